#include "plan_command.hpp"

#include <algorithm>

#include "core/base/exit_code.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text.hpp"
#include "core/config/command_line/hostfile.hpp"
#include "core/search/plan/memory_predictor.hpp"
#include "core/search/plan/modelled.hpp"
#include "core/search/space/pool.hpp"
#include "core/search/tuner/final_status.hpp"
#include "core/search/tuner/plan_report.hpp"
#include "core/search/tuner/tune.hpp"
#include "kernels/backends.hpp"

namespace dstune {

Plan begin_plan(const CommandLine& options) {
  CommandLine planned = options;
  PlannedWorkers workers{options.world_size};
  if (options.hostfile) {
    const Hostfile hosts = read_hostfile(*options.hostfile);
    planned.world_size = hosts.workers();
    workers = {hosts.workers(), hosts.workers_on_largest_host()};
  }
  const TuningConfig given = read_tuning_config(planned);
  Plan plan;
  plan.machine = machine_of_plan(given, workers, describe_devices(),
                                 profile_places(given.autotuning.results_dir));
  plan.config = completed(given, plan.machine);
  plan.backend = make_backend_to_ask(plan.machine.backend);
  if (plan.backend) plan.device = &plan.backend->device(kOnlyAsked);
  return plan;
}

void log_warnings(const Plan& plan) {
  for (const auto& warning : plan.config.warnings) log_warning(warning);
  for (const auto& warning : machine_warnings(plan.config, plan.machine)) log_warning(warning);
}

void add_stages(Plan& plan) {
  plan.stages =
      plan_stages(plan.config, plan.machine.group_size, make_memory_predictor(plan.device));
  check_modelled(plan.config, plan.stages);
}

Plan make_plan(const CommandLine& options) {
  Plan plan = begin_plan(options);
  add_stages(plan);
  const int group_size = plan.machine.group_size;
  plan.pool = plan_pool(plan.config, group_size, plan.stages, make_memory_predictor(plan.device),
                        make_dry_runner(plan.device));
  plan.experiments = plan.pool ? experiments_of(plan.config, group_size, *plan.pool)
                               : plan_experiments(plan.config, group_size, plan.stages);
  log_warnings(plan);
  return plan;
}

namespace {

bool fits(const Plan& plan) {
  // A space may have what fits where the settings outside it do not.
  return (plan.pool && !plan.pool->candidates.empty()) ||
         std::any_of(plan.stages.begin(), plan.stages.end(),
                     [](const StagePlan& stage) { return stage.feasible; });
}

}  // namespace

int print_plan(const CommandLine& options) {
  const Plan plan = make_plan(options);
  log_line(concat("host overhead: ", describe(plan.machine.host_overhead)));
  for (const auto& note : plan.config.notes) log_line(note);
  const int group_size = plan.machine.group_size;
  const Pool* const pool = plan.pool ? &*plan.pool : nullptr;
  print(options.format == TableFormat::json
            ? format_plan_json(plan.config, group_size, plan.stages, plan.experiments, pool)
            : format_plan_table(plan.config, group_size, plan.stages, plan.experiments, pool));
  if (fits(plan)) return exit_found;
  log_error(kNothingFits);
  return exit_nothing_fits;
}

}  // namespace dstune
