#include "plan_command.hpp"

#include "core/base/exit_code.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text.hpp"
#include "core/report/formats/document.hpp"
#include "core/search/tuners/report/final_status.hpp"
#include "core/search/tuners/report/plan.hpp"
#include "core/search/tuners/report/plan_report.hpp"
#include "kernels/backends.hpp"

namespace dstune {

int print_plan(const CommandLine& options) {
  const Plan plan = make_plan(options, local_backends());
  log_line(concat("host overhead: ", describe(plan.machine.host_overhead)));
  for (const auto& note : plan.config.notes) log_line(note);
  const int group_size = plan.machine.group_size;
  const Pool* const pool = plan.pool ? &*plan.pool : nullptr;
  const Document document{
      [&] {
        return format_plan_table(plan.config, group_size, plan.stages, plan.experiments, pool);
      },
      [&] {
        return format_plan_json(plan.config, group_size, plan.stages, plan.experiments, pool);
      }};
  print(format_as(options.format, document));
  if (fits(plan)) return exit_found;
  log_error(kNothingFits);
  return exit_nothing_fits;
}

}  // namespace dstune
