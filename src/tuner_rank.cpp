#include "tuner_rank.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/journal.hpp"
#include "core/report/progress.hpp"
#include "core/report/result_table.hpp"
#include "core/report/results_directory.hpp"
#include "core/report/summary.hpp"
#include "core/search/memory_predictor.hpp"
#include "core/search/scheduler.hpp"
#include "core/search/tuner.hpp"
#include "kernels/backend.hpp"
#include "mpi/mpi_worker_pool.hpp"
#include "mpi/signals.hpp"

namespace dstune {

namespace {

// The operating system, MPI and this program itself live beside the experiments.
constexpr double kUsableMemory = 0.85;

// A simulated device has as much memory as the accelerators people tune for.
constexpr Bytes kSimulatedMemory = Bytes{80} << 30U;

// Of a device that is only asked what it would need.
constexpr Bytes kNoMemory = 1;

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

ExistingResults existing_results(const CommandLine& options) {
  if (options.resume || options.force_resume) return ExistingResults::resume;
  return options.overwrite ? ExistingResults::overwrite : ExistingResults::refuse;
}

RunStatus final_status(const TuningResult& result, Seconds elapsed) {
  RunStatus status;
  status.experiments = static_cast<int>(result.records.size());
  status.elapsed = elapsed;
  if (result.best) status.best = result.best->experiment.name;
  if (result.stopped) {
    status.state = RunState::interrupted;
    status.exit_code = exit_internal_error;
    status.message = "a signal ended the run; continue it with --resume";
  } else if (result.best) {
    status.state = RunState::found;
    status.exit_code = exit_found;
  } else if (result.nothing_fits) {
    status.state = RunState::nothing_fits;
    status.exit_code = exit_nothing_fits;
    status.message =
        "no experiment fits in memory; raise memory_limit, use more ranks or a smaller model";
  } else {
    status.state = RunState::failed;
    status.exit_code = exit_internal_error;
    status.message = "no experiment could be measured; the reasons are in results.csv";
  }
  return status;
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
            results_.journal_path(),
            existing_results(options) == ExistingResults::resume ? Journal::Mode::resume
                                                                 : Journal::Mode::create,
            {to_json(config.settings.model), config.settings.backend, machine_of(pool.workers())},
            options.force_resume),
        progress_(config.autotuning.metric) {}

  int run() {
    try {
      results_.write_status({});
      return finish(search());
    } catch (const std::exception& fault) {
      report(fault.what());
      throw;
    }
  }

 private:
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
    if (result.stopped) journal_.stopped();
    results_.write_model_info({result.model_info.num_params, result.model_info.trainable_num_params,
                               result.model_info.activation_bytes_per_micro_batch});
    results_.finish({result.records, config_.autotuning.metric, result.best, group_size_,
                     options_.training_command, config_.autotuning.arg_mappings, journal_.now()});
    print(result);
    const RunStatus status = final_status(result, journal_.now());
    results_.write_status(status);
    log_end(status);
    return status.exit_code;
  }

  void print(const TuningResult& result) const {
    const auto records = tuning_records(result.records);
    const Metric metric = config_.autotuning.metric;
    std::cout << (options_.format == TableFormat::json ? result_json(records, metric)
                                                       : result_table(records, metric))
              << std::flush;
  }

  void log_end(const RunStatus& status) const {
    if (!status.message.empty()) log_error(status.message);
    if (status.best) {
      log_line(concat("best: ", *status.best, ", written to ", results_.optimal_config_path()));
    }
  }

  // The disk may be what failed: a status that cannot be written must not hide the reason.
  void report(const char* reason) const {
    try {
      RunStatus status;
      status.state = RunState::failed;
      status.exit_code = exit_internal_error;
      status.message = reason;
      status.elapsed = journal_.now();
      results_.write_status(status);
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
};

TuningConfig read_input(const CommandLine& options, const Communicator& world) {
  if (world.size() < 2) {
    throw ConfigError(
        "mpirun",
        {{"-n 1",
          "starts no worker, since rank 0 only tunes; start one rank more than there are "
          "GPUs (or CPU workers): \"mpirun -n 9\" for 8 GPUs, \"mpirun -n 3\" for 2 CPU workers"}});
  }
  return read_tuning_config(options);
}

int tune_with(MpiWorkerPool& pool, const CommandLine& options, TuningConfig& config) {
  const int group_size = resolve(config, pool);
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

TunerRankResult run_tuner_rank(const CommandLine& options, const Communicator& world) {
  watch_stop_signals();
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
  result.all_alive = pool.stop();
  return result;
}

}  // namespace dstune
