#include "core/search/tuners/report/check.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/host/this_host.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/input/problems.hpp"
#include "core/model/model_spec.hpp"
#include "core/model/parameter_text.hpp"
#include "core/report/files/existing_results.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/search/feasibility/memory_here.hpp"
#include "core/search/feasibility/memory_limit.hpp"
#include "core/search/feasibility/memory_room.hpp"
#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/feasibility/precision.hpp"
#include "core/search/space/leanest.hpp"
#include "core/search/tuners/report/plan.hpp"
#include "core/search/tuners/tune.hpp"
#include "core/search/tuners/tuner_table.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

SearchOutline outline_of_fast_mode(const TuningConfig& config, int group_size,
                                   const std::vector<StagePlan>& stages) {
  SearchOutline outline;
  for (const StagePlan& plan : stages) {
    if (plan.feasible) outline.stages.push_back(plan.stage);
  }
  outline.configurations = plan_experiments(config, group_size, stages).size();
  outline.experiments = outline.configurations;
  return outline;
}

bool stage_fits(const TuningConfig& config, int group_size, const StagePlan& plan,
                const DryRunner& dry_run) {
  if (plan.feasible || plan.max_micro_batch_of_leanest > 0) return true;
  return !config.space.empty() &&
         max_micro_batch_of_leanest(config, group_size, plan.stage, dry_run) > 0;
}

std::uint64_t count_configurations(const TuningConfig& config, int group_size,
                                   const StagePlan& plan) {
  const auto points = pool_points(config, group_size, plan);
  std::uint64_t count = 0;
  for (const Space& space : make_spaces(config, group_size, plan.stage, points)) {
    count += space.size();
  }
  return count;
}

/// Calls `check` and adds the problems that it throws to `problems`.
template <class Check>
void collect(std::vector<Problem>& problems, const Check& check) {
  try {
    check();
  } catch (const ConfigError& fault) {
    problems.insert(problems.end(), fault.problems().begin(), fault.problems().end());
  }
}

std::string outline_text(const SearchOutline& outline) {
  std::vector<std::string> numbers;
  for (const int stage : outline.stages) numbers.push_back(std::to_string(stage));
  const bool is_bounded = outline.experiments < outline.configurations;
  return concat("stages ", join(numbers, ", "), ", up to ", outline.experiments, " experiments",
                is_bounded ? concat(" of ", outline.configurations, " configurations") : "");
}

void warn_of_stages(const std::vector<StagePlan>& stages) {
  for (const StagePlan& plan : stages) {
    if (plan.unsupported.empty()) continue;
    log_warning(concat("stage ", plan.stage, " cannot run: ", plan.unsupported));
  }
}

/// The workers of a plan as if they were all on this machine.
std::vector<WorkerInfo> workers_here(const Machine& machine, std::vector<DeviceInfo> devices) {
  WorkerInfo info;
  info.host = host_name();
  info.workers_on_host = machine.devices_per_node > 0 ? machine.devices_per_node : machine.workers;
  info.devices = std::move(devices);
  return std::vector<WorkerInfo>(static_cast<std::size_t>(info.workers_on_host), info);
}

/// The memory limit of a worker on this machine.
std::optional<MemoryLimit> limit_here(const Plan& plan, const std::vector<WorkerInfo>& workers,
                                      const LocalBackends& backends) {
  const DeviceInfo* device = find_device(workers.front().devices, plan.machine.backend);
  if (device == nullptr) return std::nullopt;
  if (device->limit_is_free_memory) return limit_of_gpu_here(plan.config, plan.machine, backends);
  if (!device->is_shared) return std::nullopt;
  return limit_of_workers_here(plan.config, plan.machine.backend, workers);
}

/// The text about the memory limit. Another machine may run the configuration, so a limit that
/// exceeds this one's memory is no fault.
std::string check_memory(const Plan& plan, const LocalBackends& backends) {
  const auto workers = workers_here(plan.machine, backends.devices);
  const Bytes given = plan.config.settings.memory_limit;
  for (const auto& line :
       exceeded_rooms("memory_limit is", given, false, plan.machine.backend, workers)) {
    log_warning(concat(line, "; there the system would kill workers that use that much"));
  }
  if (given != 0) return "";
  const auto limit = limit_here(plan, workers, backends);
  if (!limit) return "; the memory limit is not known here";
  const Bytes room = limit->bytes - std::min(limit->bytes, plan.config.objective.memory_headroom);
  for (const StagePlan& stage : plan.stages) {
    if (stage.peak.counted() <= room) continue;
    log_warning(concat("stage ", stage.stage, " needs ", format_bytes(stage.peak.counted()),
                       " per rank for one sample, more than the ", format_bytes(room),
                       " that it could have on this machine"));
  }
  return concat("; here a rank could have ", format_bytes(limit->bytes), ": ", limit->origin);
}

// Another machine may run the configuration, so that the question is no fault.
void warn_of_open_precision(const Plan& plan, const LocalBackends& backends) {
  const std::string question = open_precision_question(
      plan.config, plan.machine.backend, workers_here(plan.machine, backends.devices));
  if (!question.empty())
    log_warning(concat("a run on this machine would ask: the file ", question));
}

// Checks the results' folders. Earlier results are no fault of the file: the run only has to be
// told what to do with them.
void check_results(const TuningConfig& config, const CommandLine& options) {
  const std::string& results_dir = config.autotuning.results_dir;
  const std::string& exps_dir = config.autotuning.exps_dir;
  auto existing = existing_results(options);
  if (existing == ExistingResults::refuse && holds_results(results_dir, exps_dir)) {
    log_line(concat(in_quotes(results_dir),
                    " has the results of an earlier run: --resume continues it, --overwrite starts "
                    "over, another --results-dir keeps both"));
    existing = ExistingResults::resume;
  }
  check_existing_results(results_dir, exps_dir, existing);
}

}  // namespace

SearchOutline outline_search(const TuningConfig& config, int group_size,
                             const std::vector<StagePlan>& stages, const DryRunner& dry_run) {
  if (!has_pool(config)) return outline_of_fast_mode(config, group_size, stages);
  const auto trials = static_cast<std::uint64_t>(config.autotuning.tuner_num_trials);
  SearchOutline outline;
  for (const StagePlan& given : stages) {
    const StagePlan plan =
        config.space.empty() ? given : with_leanest(config, group_size, given, dry_run);
    if (!stage_fits(config, group_size, plan, dry_run)) continue;
    const auto count = count_configurations(config, group_size, plan);
    if (count == 0) continue;
    outline.stages.push_back(plan.stage);
    outline.configurations += count;
    outline.experiments += std::min(count, trials);
  }
  if (!is_full_mode(config)) outline.experiments = std::min(outline.configurations, trials);
  return outline;
}

std::optional<std::string> check_run(const CommandLine& options, const LocalBackends& backends) {
  Plan plan = begin_plan(options, backends);
  std::vector<Problem> problems;
  collect(problems, [&] { add_stages(plan); });
  collect(problems, [&] { settle_run_folder(plan.config, options); });
  const std::string& results_dir = plan.config.autotuning.results_dir;
  collect(problems, [&] { check_results(plan.config, options); });
  for (auto& problem : problems) {
    if (problem.where == "--results-dir") problem.where = concat(problem.where, " ", results_dir);
  }
  collect(problems, [&] { check_folders(plan.config, options); });
  if (!problems.empty()) throw ConfigError(plan.config.source, std::move(problems));
  log_warnings(plan);
  warn_of_stages(plan.stages);
  warn_of_open_precision(plan, backends);
  const std::string memory = check_memory(plan, backends);
  for (const auto& note : plan.config.notes) log_line(note);
  const auto& settings = plan.config.settings;
  const ModelParameters parameters = make_model_parameters(settings.model);
  const int group_size = plan.machine.group_size;
  const auto outline =
      outline_search(plan.config, group_size, plan.stages, make_dry_runner(plan.device));
  if (outline.stages.empty() || outline.experiments == 0) return std::nullopt;
  return concat("would run: ", settings.model.name, " (",
                parameter_text(parameters.total(), parameters.trainable_total()), "), ", group_size,
                group_size == 1 ? " rank" : " ranks", " per experiment, ", outline_text(outline),
                memory);
}

}  // namespace dstune
