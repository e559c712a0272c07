#include "core/search/tuners/report/explanation.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/report/formats/document.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/explain.hpp"
#include "core/report/tables/find_record.hpp"
#include "core/report/tables/result_table.hpp"
#include "core/report/tables/summary.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/predict/foretold.hpp"
#include "core/search/predict/hindsight.hpp"
#include "core/search/tuners/report/plan.hpp"
#include "core/train/run_experiment.hpp"

namespace dstune {
namespace {

/// @param remarks  why other experiments that could be meant are not known; or ""
[[noreturn]] void throw_unknown(const std::string& name, const std::vector<std::string>& known,
                                const std::string& remarks = "") {
  const std::string near = nearest_name(name, known);
  throw ConfigError(
      "command line",
      {{"--explain", concat("knows no experiment ", in_quotes(name), "; ",
                            near.empty() ? "" : concat("did you mean ", in_quotes(near), "? "),
                            "there are: ", known.empty() ? "none" : join(known, ", "), remarks)}});
}

std::vector<std::string> names_of(const std::vector<Record>& records) {
  std::vector<std::string> names;
  names.reserve(records.size());
  for (const Record& record : records) names.push_back(record.experiment.name);
  return names;
}

// The name of the best experiment of the last run; "" if that has not ended.
std::string named_best(const std::string& results_dir) {
  const std::string path = concat(results_dir, "/status.json");
  if (!is_own_status_file(path)) return "";
  const json::value status = parse_json(read_text_file(path));
  const json::value* best = status.is_object() ? status.get_object().if_contains("best") : nullptr;
  return best != nullptr && best->is_string() ? json::value_to<std::string>(*best) : "";
}

/// The section about the prediction; "" if there is no prediction.
std::string prediction_of(const Record& record, const std::vector<Record>& records) {
  const auto predictor =
      taught_predictor(records, record.experiment.ranks, kEnoughToTeach, &record);
  const std::string text = predictor ? hindsight(*predictor, record) : "";
  return text.empty() ? "" : concat("\nPrediction: ", text, "\n");
}

}  // namespace

std::string explain_recorded(const CommandLine& options) {
  const TuningConfig config = read_tuning_config(options);
  const AskedRun run = asked_run(config);
  const std::string& results_dir = run.folder;
  const std::string path = concat(results_dir, "/journal.jsonl");
  const std::optional<std::string> lines = read_journal_file(path);
  if (!lines) {
    throw ConfigError(path, {{"--explain",
                              "needs the results of a run, and there are none here; use it after a "
                              "run, or with --plan"}});
  }
  if (run.is_of_another) {
    log_line(concat("there is no run of this configuration; explaining the last run of another, ",
                    results_dir));
  }
  const JournalContent journal = read_own_journal(*lines, path);
  for (const auto& warning : describe_damage(journal, path)) log_warning(warning);
  const std::vector<Record> records = tuning_records(journal.records);
  const Record* record = find_record(records, *options.explain);
  if (record == nullptr) throw_unknown(*options.explain, names_of(records));
  const Metric metric = config.autotuning.metric;
  const auto account = [&] {
    std::string text =
        explain(record->experiment, record->outcome) + prediction_of(*record, journal.records);
    const auto best = find_best(records, named_best(results_dir), metric);
    if (best && best->experiment.key() != record->experiment.key()) {
      text += explain_differences(*record, *best, "the best");
    }
    return text;
  };
  return format_as(options.format, {account, [&] { return result_json({*record}, metric); }});
}

namespace {

std::string remarks_on(const std::vector<StagePlan>& stages) {
  std::string remarks;
  for (const StagePlan& plan : stages) {
    if (!plan.unsupported.empty()) {
      remarks += concat("; stage ", plan.stage, " cannot run: ", plan.unsupported);
    } else if (!plan.feasible) {
      remarks += concat("; stage ", plan.stage, " does not fit in memory");
    }
  }
  return remarks;
}

/// The section about what earlier measurements say of the step; "" if there are none.
std::string foretelling_of(const TuningConfig& config, const Experiment& experiment) {
  const auto foretold = foretell(config, {experiment});
  if (!foretold || !foretold->steps[0]) return "";
  return concat("\nPrediction: ", foretold_text(*foretold->steps[0]), ", from ", foretold->origin,
                "\n");
}

// The outcome as a run would report it, by dry runs: the account of rank 0, and the memory of the
// rank that needs most.
Outcome foresee(const Experiment& experiment, const Device* device) {
  Outcome outcome = dry_run(experiment, 0, device).outcome;
  for (const int rank : ranks_to_look_at(experiment.ranks)) {
    if (!std::holds_alternative<Measured>(outcome)) break;
    Outcome other = dry_run(experiment, rank, device).outcome;
    const auto* measured = std::get_if<Measured>(&other);
    if (measured == nullptr) return other;
    PeakMemory& peak = std::get<Measured>(outcome).peak_memory;
    if (measured->peak_memory.counted() > peak.counted()) peak = measured->peak_memory;
  }
  return outcome;
}

}  // namespace

std::string explain_planned(const CommandLine& options, const LocalBackends& backends) {
  const Plan plan = make_plan(options, backends);
  std::vector<std::string> names;
  for (const Experiment& experiment : plan.experiments) {
    names.push_back(experiment.name);
    if (experiment.name != *options.explain) continue;
    const Outcome outcome = foresee(experiment, plan.device);
    const auto account = [&] {
      return explain(experiment, outcome) + foretelling_of(plan.config, experiment);
    };
    return format_as(options.format,
                     {account, [&] { return to_json_text(to_json(outcome), 2) + "\n"; }});
  }
  throw_unknown(*options.explain, names, remarks_on(plan.stages));
}

}  // namespace dstune
