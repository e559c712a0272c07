#include "explain_command.hpp"

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "core/report/explain.hpp"
#include "core/report/journal_reader.hpp"
#include "core/report/result_table.hpp"
#include "core/train/run_experiment.hpp"
#include "plan_command.hpp"

namespace dstune {

namespace {

[[noreturn]] void throw_unknown(const std::string& name, const std::vector<std::string>& known) {
  const std::string hint = did_you_mean(name, known);
  throw ConfigError("command line",
                    {{"--explain", concat("knows no experiment \"", name, "\"",
                                          hint.empty() ? "" : concat("; ", hint), "; there are: ",
                                          known.empty() ? "none" : join(known, ", "))}});
}

std::vector<std::string> names_of(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const Record& record : records) names.push_back(record.experiment.name);
  return names;
}

void explain_record(const CommandLine& options, const TuningConfig& config) {
  const std::string path = concat(config.autotuning.results_dir, "/journal.jsonl");
  if (!std::filesystem::exists(path)) {
    throw ConfigError(path, {{"--explain",
                              "needs the results of a run, and there are none here; "
                              "accepted: after a run, or with --plan"}});
  }
  const JournalContent journal = read_journal(read_text_file(path), path);
  const Record* record = find_record(journal.records, *options.explain);
  if (record == nullptr) throw_unknown(*options.explain, names_of(journal.records));
  const Metric metric = config.autotuning.metric;
  if (options.format == TableFormat::json) {
    std::cout << result_json({*record}, metric) << std::flush;
    return;
  }
  std::cout << explain(record->experiment, record->outcome);
  const Record best = ranked(journal.records, metric).front();
  if (best.experiment.key() != record->experiment.key()) {
    std::cout << explain_differences(*record, best, "the best");
  }
  std::cout << std::flush;
}

void explain_planned(const CommandLine& options) {
  const Plan plan = make_plan(options);
  std::vector<std::string> names;
  for (const Experiment& experiment : plan.experiments) {
    names.push_back(experiment.name);
    if (experiment.name != *options.explain) continue;
    const DryRun run = dry_run(experiment, 0, plan.device.get());
    std::cout << (options.format == TableFormat::json
                      ? concat(to_json_text(to_json(run.outcome), 2), "\n")
                      : explain(experiment, run.outcome))
              << std::flush;
    return;
  }
  throw_unknown(*options.explain, names);
}

}  // namespace

void print_explanation(const CommandLine& options) {
  if (options.action == CommandLine::Action::plan) {
    explain_planned(options);
  } else {
    explain_record(options, read_tuning_config(options));
  }
}

}  // namespace dstune
