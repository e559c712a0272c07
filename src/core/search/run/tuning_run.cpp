#include "core/search/run/tuning_run.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/files/exit_code.hpp"
#include "core/base/line_width.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/report/files/existing_results.hpp"
#include "core/report/files/heartbeat.hpp"
#include "core/report/files/leftovers.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/report/files/status_file.hpp"
#include "core/report/files/supervisor_files.hpp"
#include "core/report/formats/document.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/announced.hpp"
#include "core/report/tables/result_table.hpp"
#include "core/report/tables/summary.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/predict/hindsight.hpp"
#include "core/search/predict/learnt_machine.hpp"
#include "core/search/run/kept_machine.hpp"
#include "core/search/run/log_settings.hpp"
#include "core/search/run/preflight.hpp"
#include "core/search/run/progress_view.hpp"
#include "core/search/tuners/compare/profile_ties.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"
#include "core/search/tuners/report/final_status.hpp"
#include "core/search/tuners/report/result_remarks.hpp"
#include "core/search/tuners/report/user_remarks.hpp"
#include "core/search/tuners/tune.hpp"

namespace dstune {
namespace {

TrainingRanks training_ranks(const TuningConfig& config, int group_size) {
  const int processes = group_size * config.autotuning.mp_size;
  const int on_a_host = config.settings.devices_per_node;
  return {processes, on_a_host == 0 ? 1 : (processes + on_a_host - 1) / on_a_host};
}

Optimum optimum_of(const TuningResult& result, Metric metric) {
  if (!result.best) return {};
  return {result.best->experiment.name, choice_reason(result.records, metric, *result.best),
          profile_ties(result.records, metric, *result.best)};
}

// The figures of the optimum as the table and summary.txt have them; "" without one.
std::string optimum_figures(const TuningResult& result) {
  const std::vector<Announced> configurations = announced(result.records);
  const auto chosen = std::ranges::find_if(configurations, [&](const Announced& each) {
    return result.best && each.record.experiment.name == result.best->experiment.name;
  });
  return chosen == configurations.end() ? "" : figures_text(*chosen);
}

/// A run whose results directory is ours.
class Run {
 public:
  Run(const RunParts& parts, WorkerPool& pool, std::optional<EarlierJournal> earlier)
      : parts_(parts),
        config_(parts.config),
        pool_(pool),
        results_(ResultsDirectory::prepare(config_.autotuning.results_dir,
                                           config_.autotuning.exps_dir,
                                           existing_results(parts.options))),
        journal_(
            results_.journal_path(), journal_mode(existing_results(parts.options)),
            identity_of(parts), parts.options.force_resume, Journal::kLockPatience,
            this_process(parts.surroundings.launcher_folder),
            [folder = config_.autotuning.results_dir] { return another_run_lives(folder); },
            earlier ? &*earlier : nullptr),
        progress_(config_.autotuning.metric, config_.time_budget,
                  parts.options.columns.value_or(kLineWidth)),
        view_(parts.options.progress, progress_),
        heartbeat_(results_, journal_, progress_) {
    leave_results_folder(results_.path());
    record_configuration(config_);
    point_latest_at(config_.autotuning);
    if (parts.options.retry_failed) journal_.forget_failures();
    const std::string warning = warning_of_other_groups(journal_.records(), parts.group_size);
    if (!warning.empty()) log_warning(warning);
    remove_leftovers(config_.autotuning.results_dir, config_.autotuning.exps_dir,
                     {journal_.names(), journal_.past_processes()},
                     parts.surroundings.launcher_folder);
    pool_.call_while_waiting([this] {
      heartbeat_.beat_if_due();
      view_.refresh(journal_.now());
    });
  }
  ~Run() { pool_.call_while_waiting({}); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  int run() {
    try {
      heartbeat_.beat();
      const auto result = search();
      return result ? finish(*result) : finish_preflight();
    } catch (const std::exception& fault) {
      report(fault.what());
      throw;
    }
  }

 private:
  /// @returns none if only the machine was to be checked, and was
  std::optional<TuningResult> search() {
    Scheduler scheduler(
        pool_, journal_,
        [this, &scheduler](const Record& record, bool from_journal) {
          progress_.set_slow_workers(scheduler.slow_workers());
          heartbeat_.has_news();
          if (is_beside_search(record.experiment)) return progress_.ends(record.experiment.name);
          results_.write_record(record);
          view_.say(progress_.line(record, from_journal, journal_.now()));
        },
        parts_.surroundings.interrupted);
    scheduler.call_at_start([this](const Experiment& experiment) { begin(experiment); });
    preflight_ = run_preflight(config_, parts_.group_size, scheduler, parts_.workers);
    log_preflight(preflight_.summary);
    const bool goes_on = !scheduler.wrong_sums() && !parts_.surroundings.interrupted();
    if (config_.preflight == Preflight::only && goes_on) return std::nullopt;
    return tune(config_, parts_.group_size, scheduler, parts_.predictor, parts_.dry_run,
                start_factors(journal_.learnt()),
                [this](const Ahead& ahead) { progress_.expect(ahead, journal_.now()); });
  }

  /// Before the first experiment of this run ends, its reader knows what is to come.
  void begin(const Experiment& experiment) {
    progress_.begins(experiment.name, journal_.now());
    heartbeat_.has_news();
    if (is_beside_search(experiment) || std::exchange(has_begun_, true)) return;
    view_.say(progress_.first_line(experiment.name));
  }

  int finish_preflight() {
    view_.take_away();
    journal_.stay_in_place();
    RunStatus status;
    status.elapsed = journal_.now();
    status.slow_workers = preflight_.faults;
    if (preflight_.summary.empty()) {
      status.state = RunState::failed;
      status.exit_code = exit_internal_error;
      status.message = "no group of workers could be checked";
      log_error(status.message);
    } else {
      status.state = RunState::found;
      status.message =
          "only the machine was checked; to tune, drop \"preflight\": \"only\" and use --resume";
      parts_.surroundings.print(preflight_text(preflight_));
    }
    results_.write_status(stamped(status));
    return status.exit_code;
  }

  int finish(const TuningResult& result) {
    view_.take_away();
    journal_.stay_in_place();
    // An experiment that lost its worker may be one that kills workers, so that it still counts as
    // a crash of its own.
    if (result.stopped && !result.shortage) journal_.stopped();
    results_.write_model_info({result.model_info.num_params, result.model_info.trainable_num_params,
                               result.model_info.activation_bytes_per_micro_batch});
    auto remarks = user_remarks(result);
    for (auto& remark : result_remarks(result, config_.autotuning.metric)) {
      remarks.push_back(std::move(remark));
    }
    for (const auto& fault : preflight_.slow_connections) remarks.push_back(fault);
    const auto predictor = taught();
    Optimum optimum = optimum_of(result, config_.autotuning.metric);
    optimum.baseline = baseline_name(config_, parts_.group_size, result.records);
    const auto command = results_.finish(results_of(result, optimum, remarks, predictor));
    if (!result.stopped && predictor) keep_learnt(*predictor);
    RunStatus status = final_status(result, journal_.now());
    if (parts_.options.run && status.state == RunState::found) leave_training_command(command);
    print_table(result, optimum, remarks, status);
    results_.write_status(stamped(status));
    log_end(status);
    // Where the table is not for people, the log has had all remarks already.
    if (kTableFormats[static_cast<std::size_t>(parts_.options.format)].is_for_people) {
      for (const auto& remark : user_remarks(result)) log_line(remark);
    }
    const std::string figures = optimum_figures(result);
    if (!figures.empty()) log_line(concat("it takes ", figures));
    return status.exit_code;
  }

  /// What comes first of what is said of the result.
  std::vector<std::string> user_remarks(const TuningResult& result) const {
    const Record* const best = result.best ? &*result.best : nullptr;
    std::vector<std::string> remarks;
    if (best != nullptr) remarks.push_back(batch_remark(config_, parts_.group_size, *best));
    remarks.push_back(baseline_remark(config_, parts_.group_size, result.records, best));
    std::erase(remarks, "");
    return remarks;
  }

  RunResults results_of(const TuningResult& result, const Optimum& optimum,
                        const std::vector<std::string>& remarks,
                        const std::optional<StepTimePredictor>& predictor) const {
    auto notes = config_.notes;
    notes.insert(notes.end(), remarks.begin(), remarks.end());
    if (!preflight_.summary.empty()) notes.push_back(concat("preflight: ", preflight_.summary));
    const std::string quality = predictor ? quality_text(predictor->quality()) : "";
    if (!quality.empty()) notes.push_back(quality);
    const CommandLine& options = parts_.options;
    return {result.records,
            config_.autotuning.metric,
            result.best,
            parts_.group_size,
            options.training_command,
            config_.autotuning.arg_mappings,
            options.emit,
            training_ranks(config_, parts_.group_size),
            journal_.now(),
            result.stopped,
            std::move(notes),
            config_.left_to_trainer,
            result.predictions,
            optimum,
            result.searched};
  }

  /// A predictor that has learnt all that was measured; none if nothing was, or if it cannot be.
  std::optional<StepTimePredictor> taught() const {
    try {
      return taught_predictor(journal_.records(), parts_.group_size);
    } catch (const std::exception& fault) {
      log_warning(concat("how well step times were predicted is not known: ", fault.what()));
      return std::nullopt;
    }
  }

  /// What was learnt is relative to the machine's rates, so that these must have been measured.
  void keep_learnt(const StepTimePredictor& predictor) const {
    const bool is_measured = run_rates(journal_.records(), parts_.group_size).has_value();
    if (!is_measured || predictor.quality().count < kLeastLessons) return;
    keep_machine(parts_.kept_machine,
                 learnt_machine(predictor, config_.settings.model.name, parts_.group_size));
  }

  // The results are on the disk by then, so that a failure to print them does not end the run.
  void print_table(const TuningResult& result, const Optimum& optimum,
                   const std::vector<std::string>& remarks, RunStatus& status) const {
    const Metric metric = config_.autotuning.metric;
    const CommandLine& options = parts_.options;
    const Document document{
        [&] {
          return result_table(result.records, metric, remarks, optimum, options.wide,
                              options.columns.value_or(kLineWidth));
        },
        [&] { return result_json(result.records, metric, optimum, result.searched); }};
    const TableFormat format = options.format;
    try {
      const std::string text = format_as(format, document);
      const std::string fault = parts_.surroundings.why_cannot_print(text.size());
      if (!fault.empty()) throw Error(concat("cannot write standard output: ", fault));
      parts_.surroundings.print(text);
    } catch (const Error& fault) {
      status.exit_code = exit_internal_error;
      status.message = concat(fault.what(), "; the results are in ", results_.path());
    }
    if (kTableFormats[static_cast<std::size_t>(format)].is_for_people) return;
    for (const auto& remark : remarks) log_line(remark);
  }

  void log_end(const RunStatus& status) const {
    if (!status.message.empty()) log_error(status.message);
    if (!status.best) return;
    const HostOverhead& overhead = config_.settings.host_overhead;
    const std::string cost = preset_cost(overhead);
    log_line(concat(status.provisional ? "best so far (provisional): " : "best: ", *status.best,
                    ", written to ", results_.optimal_config_path(status.provisional)));
    if (!cost.empty()) log_line(concat("it was chosen by ", describe(overhead), ": ", cost));
    for (const auto& note : config_.notes) log_line(note);
    if (parts_.options.run && !is_training_started()) log_line(kNobodyStarts);
  }

  // The disk itself may have failed: a status that cannot be written must not hide the reason.
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

  const RunParts& parts_;
  const TuningConfig& config_;
  WorkerPool& pool_;
  ResultsDirectory results_;
  Journal journal_;
  Progress progress_;
  ProgressView view_;
  bool has_begun_ = false;  ///< an experiment of the search was sent to its workers
  Heartbeat heartbeat_;
  PreflightReport preflight_;
};

/// Calls `work` and turns what it throws into a message and an exit code.
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

RunInput read_run_input(const CommandLine& options, int ranks) {
  RunInput input;
  input.exit_code = guarded([&] {
    input.config.emplace(read_checked_config(options, ranks));
    log_beginning(*input.config, ranks);
    return int{exit_found};
  });
  return input;
}

int run_tuning(const CommandLine& options, const TuningConfig& given, WorkerPool& pool,
               const std::vector<WorkerInfo>& workers, const Surroundings& surroundings) {
  return guarded([&] {
    RunParts parts = make_run_parts(pool, options, given, workers, surroundings);
    make_run_folder(parts.config, options);
    Run run(parts, pool, std::move(parts.earlier));
    return run.run();
  });
}

}  // namespace dstune
