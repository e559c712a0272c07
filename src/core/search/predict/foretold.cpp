#include "core/search/predict/foretold.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <variant>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/report/journal/journal_file.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/search/predict/hindsight.hpp"

namespace dstune {
namespace {

std::vector<Record> records_of_run(const std::string& folder, const TuningConfig& config) {
  const std::string path = concat(folder, "/journal.jsonl");
  const auto lines = read_journal_file(path);
  if (!lines) return {};
  JournalContent journal = read_own_journal(*lines, path);
  for (const auto& warning : describe_damage(journal, path)) log_warning(warning);
  const bool is_alike = journal.identity && journal.identity->backend == config.settings.backend;
  return is_alike ? std::move(journal.records) : std::vector<Record>();
}

bool is_lesson(const Record& record, int ranks) {
  return record.experiment.ranks == ranks && !record.experiment.measures_machine &&
         std::holds_alternative<Measured>(record.outcome);
}

std::optional<Foretold> foretell_from(const AskedRun& run, const TuningConfig& config,
                                      const std::vector<Experiment>& experiments) {
  const std::vector<Record> records = records_of_run(run.folder, config);
  const int ranks = experiments.front().ranks;
  const auto lessons =
      std::ranges::count_if(records, [&](const Record& each) { return is_lesson(each, ranks); });
  auto predictor = lessons == 0 ? std::nullopt : taught_predictor(records, ranks);
  if (!predictor) return std::nullopt;
  predictor->walk_ahead(experiments);
  Foretold foretold{concat(lessons, lessons == 1 ? " measurement in " : " measurements in ",
                           run.folder, run.is_of_another ? ", a run of another configuration" : ""),
                    {}};
  for (const Experiment& experiment : experiments) {
    try {
      foretold.steps.emplace_back(predictor->predict(experiment));
    } catch (const std::invalid_argument&) {
      foretold.steps.emplace_back();
    }
  }
  return foretold;
}

}  // namespace

std::optional<Foretold> foretell(const TuningConfig& config,
                                 const std::vector<Experiment>& experiments) {
  if (experiments.empty()) return std::nullopt;
  try {
    return foretell_from(asked_run(config), config, experiments);
  } catch (const std::exception& fault) {  // a plan needs no journal
    log_warning(concat("no step times are predicted: ", fault.what()));
    return std::nullopt;
  }
}

std::string foretold_text(const Prediction& prediction) {
  const PredictionInterval interval = interval_of(prediction);
  return concat(format_seconds(prediction.step_time), ", with 90 % between ",
                format_seconds(interval.low), " and ", format_seconds(interval.high));
}

}  // namespace dstune
