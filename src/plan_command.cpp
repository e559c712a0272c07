#include "plan_command.hpp"

#include <iostream>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/hostfile.hpp"
#include "core/search/memory_predictor.hpp"
#include "core/search/plan_report.hpp"
#include "core/search/tuner.hpp"
#include "kernels/backend.hpp"

namespace dstune {

namespace {

constexpr Bytes kNoMemory = 1;

}  // namespace

Plan make_plan(const CommandLine& options) {
  CommandLine planned = options;
  if (!planned.world_size) planned.world_size = read_hostfile(options.hostfile.value()).workers();
  const int workers = *planned.world_size;
  Plan plan;
  plan.config = read_tuning_config(planned);
  plan.group_size = plan.config.ranks_per_experiment.value_or(workers);
  if (plan.group_size > workers) {
    throw ConfigError(plan.config.source,
                      {{"/dstune/ranks_per_experiment",
                        concat("is ", plan.group_size, ", but there are ", workers, " workers")}});
  }
  RunSettings& settings = plan.config.settings;
  settings.backend = resolve_backend(settings.backend);
  plan.device = make_device(settings.backend, kNoMemory);
  plan.stages = plan_stages(plan.config, plan.group_size, make_memory_predictor(plan.device.get()));
  plan.experiments = plan_experiments(plan.config, plan.group_size, plan.stages);
  for (const auto& warning : plan.config.warnings) log_warning(warning);
  return plan;
}

void print_plan(const CommandLine& options) {
  const Plan plan = make_plan(options);
  std::cout << (options.format == TableFormat::json
                    ? format_plan_json(plan.config, plan.group_size, plan.stages, plan.experiments)
                    : format_plan_table(plan.config, plan.group_size, plan.stages,
                                        plan.experiments))
            << std::flush;
}

}  // namespace dstune
