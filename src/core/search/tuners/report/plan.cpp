#include "core/search/tuners/report/plan.hpp"

#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/config/command_line/hostfile.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/search/feasibility/memory_here.hpp"
#include "core/search/feasibility/modelled.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/offload_space.hpp"
#include "core/search/tuners/tune.hpp"

namespace dstune {

namespace {

/// Where the user sets no memory limit: takes that of the GPU of this machine, if there is one.
void take_limit_of_gpu_here(Plan& plan, const LocalBackends& backends) {
  if (plan.machine.memory_limit != 0) return;
  auto limit = limit_of_gpu_here(plan.config, plan.machine, backends);
  if (!limit) return;
  plan.machine.memory_limit = limit->bytes;
  plan.machine.memory_limit_origin = std::move(limit->origin);
  plan.config = completed(std::move(plan.config), plan.machine);
}

}  // namespace

Plan begin_plan(const CommandLine& options, const LocalBackends& backends) {
  CommandLine planned = options;
  PlannedWorkers workers{options.world_size};
  if (options.hostfile) {
    const Hostfile hosts = read_hostfile(*options.hostfile);
    planned.world_size = hosts.workers();
    workers = {hosts.workers(), hosts.workers_on_largest_host()};
  }
  const TuningConfig given = read_tuning_config(planned);
  Plan plan;
  plan.machine = machine_of_plan(given, workers, backends.devices,
                                 profile_places(results_root(given.autotuning)));
  plan.config = completed(given, plan.machine);
  plan.backend = backends.make_to_ask(plan.machine.backend);
  if (plan.backend) plan.device = &plan.backend->device(kOnlyAsked);
  return plan;
}

void log_warnings(const Plan& plan) {
  for (const auto& warning : plan.config.warnings) log_warning(warning);
  for (const auto& warning : machine_warnings(plan.config, plan.machine)) log_warning(warning);
}

void add_stages(Plan& plan) {
  const MemoryPredictor predictor = make_memory_predictor(plan.device);
  const int group_size = plan.machine.group_size;
  const TuningConfig given = plan.config;  // advice is on what the user asks for, without our axes
  plan.config = with_offload(given, plan.machine, predictor, make_dry_runner(plan.device));
  plan.stages = plan_stages(plan.config, group_size, predictor);
  check_modelled(plan.config, plan.stages);
  for (StagePlan& stage : plan.stages) {
    if (fits_as_asked(plan.config, stage) || !stage.unsupported.empty()) continue;
    if (says_what_is_offloaded(plan.config.deepspeed.json(), {}, {})) continue;
    stage.advice = offload_advice(given, plan.machine, stage.stage, predictor);
  }
}

Plan make_plan(const CommandLine& options, const LocalBackends& backends) {
  Plan plan = begin_plan(options, backends);
  take_limit_of_gpu_here(plan, backends);
  add_stages(plan);
  const int group_size = plan.machine.group_size;
  plan.pool = plan_pool(plan.config, group_size, plan.stages, make_memory_predictor(plan.device),
                        make_dry_runner(plan.device));
  plan.experiments = plan.pool ? experiments_of(plan.config, group_size, *plan.pool)
                               : plan_experiments(plan.config, group_size, plan.stages);
  log_warnings(plan);
  return plan;
}

bool fits(const Plan& plan) {
  // A space may have configurations that fit where the file's own settings do not, and need not
  // have those.
  if (plan.pool) return !plan.pool->candidates.empty();
  return std::any_of(plan.stages.begin(), plan.stages.end(),
                     [](const StagePlan& stage) { return stage.feasible; });
}

Stores full_stores(const Plan& plan) {
  if (plan.pool && plan.pool->full.any()) return plan.pool->full;
  Stores full;
  for (const StagePlan& stage : plan.stages) {
    full |= full_stores(stage, plan.config.settings.memory_limit);
  }
  return full;
}

}  // namespace dstune
