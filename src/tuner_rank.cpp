#include "tuner_rank.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/exit_code_file.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text.hpp"
#include "core/base/this_host.hpp"
#include "core/config/tuning_config.hpp"
#include "core/experiment/deepspeed_version.hpp"
#include "core/report/files/existing_results.hpp"
#include "core/report/files/heartbeat.hpp"
#include "core/report/files/leftovers.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/results_directory.hpp"
#include "core/report/files/second_lock.hpp"
#include "core/report/files/supervisor_files.hpp"
#include "core/report/formats/document.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/predictions.hpp"
#include "core/report/tables/progress.hpp"
#include "core/report/tables/result_table.hpp"
#include "core/search/feasibility/log_settings.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/feasibility/memory_limit.hpp"
#include "core/search/feasibility/modelled.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/predict/hindsight.hpp"
#include "core/search/schedule/scheduler.hpp"
#include "core/search/tuners/compare/profile_ties.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"
#include "core/search/tuners/report/final_status.hpp"
#include "core/search/tuners/report/result_remarks.hpp"
#include "core/search/tuners/tune.hpp"
#include "kernels/backends.hpp"
#include "mpi/base/launcher.hpp"
#include "mpi/base/library.hpp"
#include "mpi/lifeline/signals.hpp"
#include "mpi/pool/mpi_worker_pool.hpp"

namespace dstune {

namespace {

TrainingRanks training_ranks(const TuningConfig& config, int group_size) {
  const int processes = group_size * config.autotuning.mp_size;
  const int on_a_host = config.settings.devices_per_node;
  return {processes, on_a_host == 0 ? 1 : (processes + on_a_host - 1) / on_a_host};
}

Optimum optimum_of(const TuningResult& result, Metric metric) {
  if (!result.best) return {};
  return {result.best->experiment.name, choice_reason(result.records, metric, *result.best)};
}

/// A run whose results directory is ours.
class Run {
 public:
  Run(const CommandLine& options, const TuningConfig& config, int group_size,
      const MemoryPredictor& predictor, DryRunner dry_run, MpiWorkerPool& pool)
      : options_(options),
        config_(config),
        group_size_(group_size),
        predictor_(predictor),
        dry_run_(std::move(dry_run)),
        pool_(pool),
        results_(ResultsDirectory::prepare(config.autotuning.results_dir,
                                           config.autotuning.exps_dir, existing_results(options))),
        journal_(results_.journal_path(), journal_mode(existing_results(options)),
                 {to_json(config.settings.model), config.settings.backend,
                  device_names(config.settings.backend, pool.workers()),
                  to_text(deepspeed_version_of(config.deepspeed)), version_text(),
                  library_names(config.settings.backend, pool.workers()), mpi_library(),
                  config.settings.threads_per_rank},
                 options.force_resume, Journal::kLockPatience, this_process(launcher_folder()),
                 [folder = config.autotuning.results_dir] { return another_run_lives(folder); }),
        progress_(config.autotuning.metric),
        heartbeat_(results_, journal_, progress_) {
    leave_results_folder(results_.path());
    if (options.retry_failed) journal_.forget_failures();
    const std::string warning = warning_of_other_groups(journal_.records(), group_size);
    if (!warning.empty()) log_warning(warning);
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
  TuningResult search() {
    Scheduler scheduler(
        pool_, journal_,
        [this, &scheduler](const Record& record, bool from_journal) {
          progress_.set_slow_workers(scheduler.slow_workers());
          if (record.experiment.measures_machine) return;
          results_.write_record(record);
          log_line(progress_.line(record, from_journal, journal_.now()));
        },
        stop_requested);
    return tune(config_, group_size_, scheduler, predictor_, dry_run_);
  }

  int finish(const TuningResult& result) {
    journal_.stay_in_place();
    // What lost its worker may be what kills workers: it stays a crash of its own.
    if (result.stopped && !result.shortage) journal_.stopped();
    results_.write_model_info({result.model_info.num_params, result.model_info.trainable_num_params,
                               result.model_info.activation_bytes_per_micro_batch});
    const auto remarks = result_remarks(result, config_.autotuning.metric);
    auto notes = config_.notes;
    notes.insert(notes.end(), remarks.begin(), remarks.end());
    const std::string quality = prediction_quality();
    if (!quality.empty()) notes.push_back(quality);
    const auto command =
        results_.finish({result.records, config_.autotuning.metric, result.best, group_size_,
                         options_.training_command, config_.autotuning.arg_mappings, options_.emit,
                         training_ranks(config_, group_size_), journal_.now(), result.stopped,
                         notes, config_.left_to_trainer});
    RunStatus status = final_status(result, journal_.now());
    if (options_.run && status.state == RunState::found) leave_training_command(command);
    print_table(result, remarks, status);
    results_.write_status(stamped(status));
    log_end(status);
    return status.exit_code;
  }

  std::string prediction_quality() const {
    constexpr std::size_t kEnough = 128;  // each takes a dry step
    try {
      const auto predictor = taught_predictor(journal_.records(), group_size_, kEnough);
      return predictor ? quality_text(predictor->quality()) : "";
    } catch (const std::exception& fault) {
      log_warning(concat("how well step times were predicted cannot be said: ", fault.what()));
      return "";
    }
  }

  // The results are on the disk by then: what cannot be printed is no reason to lose them.
  void print_table(const TuningResult& result, const std::vector<std::string>& remarks,
                   RunStatus& status) const {
    const Metric metric = config_.autotuning.metric;
    const auto ties =
        result.best ? profile_ties(result.records, metric, *result.best) : std::set<std::string>();
    const Optimum optimum = optimum_of(result, metric);
    const Document document{
        [&] { return result_table(result.records, metric, remarks, ties, optimum); },
        [&] { return result_json(result.records, metric, ties, optimum); }};
    try {
      const std::string text = format_as(options_.format, document);
      const std::string fault = why_launcher_cannot_print(text.size());
      if (!fault.empty()) throw Error(concat("cannot write standard output: ", fault));
      print(text);
    } catch (const Error& fault) {
      status.exit_code = exit_internal_error;
      status.message = concat(fault.what(), "; the results are in ", results_.path());
    }
    if (kTableFormats[static_cast<std::size_t>(options_.format)].is_for_people) return;
    for (const auto& remark : remarks) log_line(remark);
  }

  void log_end(const RunStatus& status) const {
    if (!status.message.empty()) log_error(status.message);
    if (status.best) {
      log_line(concat(status.provisional ? "best so far (provisional): " : "best: ", *status.best,
                      ", written to ", results_.optimal_config_path(status.provisional)));
      for (const auto& note : config_.notes) log_line(note);
      if (options_.run && !is_training_started()) log_line(kNobodyStarts);
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
  const MemoryPredictor& predictor_;
  DryRunner dry_run_;
  MpiWorkerPool& pool_;
  ResultsDirectory results_;
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

std::optional<Bytes> earlier_limit(const CommandLine& options, const TuningConfig& config) {
  if (existing_results(options) != ExistingResults::resume) return std::nullopt;
  const auto limit = earlier_memory_limit(concat(config.autotuning.results_dir, "/", kJournalName));
  // That of its experiments, which left the headroom.
  return limit ? std::optional(*limit + config.objective.memory_headroom) : std::nullopt;
}

int tune_with(MpiWorkerPool& pool, const CommandLine& options, const TuningConfig& given) {
  const auto workers = pool.workers();
  const Machine machine =
      machine_of_run(given, workers, pool.size(), host_name(), earlier_limit(options, given),
                     profile_places(given.autotuning.results_dir));
  const TuningConfig config = completed(given, machine);
  const auto backend = make_backend_to_ask(machine.backend);
  const Device* const imitated = backend ? &backend->device(kOnlyAsked) : nullptr;
  const auto predictor = make_memory_predictor(imitated);
  // Before anything of an earlier run is touched.
  check_modelled(config, plan_stages(config, machine.group_size, predictor));
  log_settings(config, machine, workers);
  if (options.run && !is_training_started()) log_warning(kNobodyStarts);
  for (const auto& warning : machine_warnings(given, machine, workers, host_name())) {
    log_warning(warning);
  }
  return Run(options, config, machine.group_size, predictor, make_dry_runner(imitated), pool).run();
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
  std::optional<const TuningConfig> config;
  const int input = guarded([&] {
    config.emplace(read_input(options, world));
    return int{exit_found};
  });
  if (!config) {
    broadcast_stop(world);
    return {input, true};
  }
  PoolOptions pool_options;
  pool_options.worker_timeout = config->worker_timeout;
  pool_options.interrupted = stop_requested;
  MpiWorkerPool pool(world, pool_options);
  TunerRankResult result;
  result.exit_code = guarded([&] { return tune_with(pool, options, *config); });
  leave_exit_code(result.exit_code);  // whoever ended the run may not wait for the workers' goodbye
  result.all_alive = pool.stop();
  return result;
}

}  // namespace dstune
