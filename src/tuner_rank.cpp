#include "tuner_rank.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check_command.hpp"
#include "core/base/exit_code_file.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/heartbeat.hpp"
#include "core/report/journal.hpp"
#include "core/report/leftovers.hpp"
#include "core/report/progress.hpp"
#include "core/report/result_table.hpp"
#include "core/report/results_directory.hpp"
#include "core/search/final_status.hpp"
#include "core/search/memory_predictor.hpp"
#include "core/search/scheduler.hpp"
#include "core/search/tuner.hpp"
#include "kernels/backend.hpp"
#include "mpi/launcher.hpp"
#include "mpi/mpi_worker_pool.hpp"
#include "mpi/signals.hpp"
#include "plan_command.hpp"

namespace dstune {

namespace {

// The operating system, MPI and this program itself live beside the experiments.
constexpr double kUsableMemory = 0.85;

// A simulated device has as much memory as the accelerators people tune for.
constexpr Bytes kSimulatedMemory = Bytes{80} << 30U;

Bytes default_memory_limit(const std::string& backend, const std::vector<WorkerInfo>& workers) {
  if (backend == "sim") return kSimulatedMemory;
  double least = 0;
  for (const auto& worker : workers) {
    const double share = kUsableMemory * static_cast<double>(worker.memory_bytes) /
                         std::max(worker.workers_on_host, 1);
    least = least == 0 ? share : std::min(least, share);
  }
  return static_cast<Bytes>(least);
}

int threads_per_rank(const std::vector<WorkerInfo>& workers) {
  int least = 0;
  for (const auto& worker : workers) {
    const int share = std::max(1, worker.cores / std::max(worker.workers_on_host, 1));
    least = least == 0 ? share : std::min(least, share);
  }
  return std::max(least, 1);
}

int devices_per_node(const std::vector<WorkerInfo>& workers) {
  int most = 0;
  for (const auto& worker : workers) most = std::max(most, worker.workers_on_host);
  return most;
}

std::string machine_of(const std::vector<WorkerInfo>& workers) {
  std::set<std::string> machines;
  for (const auto& worker : workers) machines.insert(worker.machine);
  return join({machines.begin(), machines.end()}, ", ");
}

/// Settles what depends on the machine. @throws ConfigError
int resolve(TuningConfig& config, const MpiWorkerPool& pool) {
  const auto workers = pool.workers();
  const int group_size = config.ranks_per_experiment.value_or(pool.size());
  if (group_size < 1 || group_size > pool.size()) {
    throw ConfigError(config.source, {{"/dstune/ranks_per_experiment",
                                       concat("is ", group_size, ", but mpirun started ",
                                              pool.size(), " workers (rank 0 only tunes); start ",
                                              group_size + 1, " ranks or more")}});
  }
  RunSettings& settings = config.settings;
  settings.backend = resolve_backend(settings.backend);
  settings.threads_per_rank = threads_per_rank(workers);
  settings.devices_per_node = devices_per_node(workers);
  if (settings.memory_limit == 0) {
    settings.memory_limit = default_memory_limit(settings.backend, workers);
  }
  return group_size;
}

void log_settings(const TuningConfig& config, int group_size, const MpiWorkerPool& pool) {
  const RunSettings& settings = config.settings;
  std::map<std::string, int> hosts;
  for (const auto& worker : pool.workers()) ++hosts[worker.host];
  const auto parameters = make_model_parameters(settings.model).total();
  log_line(concat("dstune-mpi: ", settings.model.name, " (", parameters, " parameters), sequence ",
                  settings.sequence_length, "; ", pool.size(), " workers on ", hosts.size(),
                  hosts.size() == 1 ? " host" : " hosts", ", ", group_size, " per experiment, ",
                  settings.backend, ", ", format_bytes(settings.memory_limit), " and ",
                  settings.threads_per_rank,
                  settings.threads_per_rank == 1 ? " thread" : " threads", " per rank"));
  for (const auto& warning : config.warnings) log_warning(warning);
}

/// A run whose results directory is ours.
class Run {
 public:
  Run(const CommandLine& options, const TuningConfig& config, int group_size, MpiWorkerPool& pool)
      : options_(options),
        config_(config),
        group_size_(group_size),
        pool_(pool),
        results_(ResultsDirectory::prepare(config.autotuning.results_dir,
                                           config.autotuning.exps_dir, existing_results(options))),
        device_(make_device(config.settings.backend, kNoMemory)),
        journal_(
            results_.journal_path(), journal_mode(existing_results(options)),
            {to_json(config.settings.model), config.settings.backend, machine_of(pool.workers())},
            options.force_resume, Journal::kLockPatience, this_process(launcher_folder())),
        progress_(config.autotuning.metric),
        heartbeat_(results_, journal_, progress_) {
    if (options.retry_failed) journal_.forget_failures();
    warn_of_other_groups();
    remove_leftovers(config.autotuning.results_dir, config.autotuning.exps_dir,
                     {journal_.names(), journal_.past_processes()}, launcher_folder());
    pool_.call_while_waiting([this] { heartbeat_.beat_if_due(); });
  }
  ~Run() { pool_.call_while_waiting({}); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int run() {
    try {
      heartbeat_.beat();
      return finish(search());
    } catch (const std::exception& fault) {
      report(fault.what());
      throw;
    }
  }

 private:
  // Another size of group is another experiment, though it has the same name.
  void warn_of_other_groups() const {
    std::set<int> sizes;
    for (const auto& record : journal_.records()) sizes.insert(record.experiment.ranks);
    if (sizes.empty() || sizes.contains(group_size_)) return;
    log_warning(concat("the results found there are of groups of ", *sizes.rbegin(),
                       " ranks, now they are ", group_size_,
                       ": everything is measured again; --ranks-per-experiment ", *sizes.rbegin(),
                       " would go on"));
  }

  TuningResult search() {
    Scheduler scheduler(
        pool_, journal_,
        [this](const Record& record, bool from_journal) {
          results_.write_record(record);
          log_line(progress_.line(record, from_journal, journal_.now()));
        },
        stop_requested);
    return tune(config_, group_size_, scheduler, make_memory_predictor(device_.get()));
  }

  int finish(const TuningResult& result) {
    journal_.stay_in_place();
    // What lost its worker may be what kills workers: it stays a crash of its own.
    if (result.stopped && !result.shortage) journal_.stopped();
    results_.write_model_info({result.model_info.num_params, result.model_info.trainable_num_params,
                               result.model_info.activation_bytes_per_micro_batch});
    results_.finish({result.records, config_.autotuning.metric, result.best, group_size_,
                     options_.training_command, config_.autotuning.arg_mappings, journal_.now(),
                     result.stopped, config_.notes});
    RunStatus status = final_status(result, journal_.now());
    print_table(result, status);
    results_.write_status(stamped(status));
    log_end(status);
    return status.exit_code;
  }

  // The results are on the disk by then: what cannot be printed is no reason to lose them.
  void print_table(const TuningResult& result, RunStatus& status) const {
    const Metric metric = config_.autotuning.metric;
    try {
      print(options_.format == TableFormat::json ? result_json(result.records, metric)
                                                 : result_table(result.records, metric));
    } catch (const Error& fault) {
      status.exit_code = exit_internal_error;
      status.message = concat(fault.what(), "; the results are in ", results_.path());
    }
  }

  void log_end(const RunStatus& status) const {
    if (!status.message.empty()) log_error(status.message);
    if (status.best) {
      log_line(concat(status.provisional ? "best so far (provisional): " : "best: ", *status.best,
                      ", written to ", results_.optimal_config_path(status.provisional)));
      for (const auto& note : config_.notes) log_line(note);
    }
  }

  // The disk may be what failed: a status that cannot be written must not hide the reason.
  void report(const char* reason) const {
    try {
      if (!journal_.is_in_place()) return;  // the folder is another run's now
      RunStatus status;
      status.state = RunState::failed;
      status.exit_code = exit_internal_error;
      status.message = reason;
      status.experiments = progress_.finished();
      status.elapsed = journal_.now();
      results_.write_status(stamped(status));
    } catch (const std::exception& fault) {
      log_warning(concat("status.json could not be written: ", fault.what()));
    }
  }

  const CommandLine& options_;
  const TuningConfig& config_;
  int group_size_;
  MpiWorkerPool& pool_;
  ResultsDirectory results_;
  std::unique_ptr<Device> device_;  // what the predictions stand for; holds nothing
  Journal journal_;
  Progress progress_;
  Heartbeat heartbeat_;
};

TuningConfig read_input(const CommandLine& options, const Communicator& world) {
  if (world.size() < 2) {
    throw ConfigError(
        "mpirun",
        {{"-n 1",
          "starts no worker, since rank 0 only tunes; start one rank more than there are "
          "GPUs (or CPU workers): \"mpirun -n 9\" for 8 GPUs, \"mpirun -n 3\" for 2 CPU workers"}});
  }
  TuningConfig config = read_tuning_config(options);
  check_folders(config, options);
  return config;
}

int tune_with(MpiWorkerPool& pool, const CommandLine& options, TuningConfig& config) {
  const int group_size = resolve(config, pool);
  check_plan(config, group_size);  // before anything of an earlier run is touched
  log_settings(config, group_size, pool);
  return Run(options, config, group_size, pool).run();
}

/// Calls `work`; what it throws becomes a message and an exit code.
template <class Work>
int guarded(Work work) {
  try {
    return work();
  } catch (const ConfigError& fault) {
    log_error(fault.what());
    return exit_wrong_input;
  } catch (const std::exception& fault) {
    log_error(fault.what());
    return exit_internal_error;
  }
}

}  // namespace

ExistingResults existing_results(const CommandLine& options) {
  if (options.resume || options.force_resume) return ExistingResults::resume;
  return options.overwrite ? ExistingResults::overwrite : ExistingResults::refuse;
}

TunerRankResult run_tuner_rank(const CommandLine& options, const Communicator& world) {
  TuningConfig config;
  const int input = guarded([&] {
    config = read_input(options, world);
    return int{exit_found};
  });
  if (input != exit_found) {
    broadcast_stop(world);
    return {input, true};
  }
  PoolOptions pool_options;
  pool_options.worker_timeout = config.worker_timeout;
  pool_options.interrupted = stop_requested;
  MpiWorkerPool pool(world, pool_options);
  TunerRankResult result;
  result.exit_code = guarded([&] { return tune_with(pool, options, config); });
  leave_exit_code(result.exit_code);  // whoever ended the run may not wait for the workers' goodbye
  result.all_alive = pool.stop();
  return result;
}

}  // namespace dstune
