#include "core/search/predict/hindsight.hpp"

#include <algorithm>
#include <variant>

#include "core/base/text.hpp"
#include "core/report/tables/predictions.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/space/effect.hpp"

namespace dstune {
namespace {

std::optional<RunRates> rates_among(const std::vector<Record>& records, int ranks) {
  const auto own = [&](const Record& record) {
    return record.experiment.ranks == ranks && std::holds_alternative<Measured>(record.outcome);
  };
  const auto first = std::find_if(records.begin(), records.end(), own);
  if (first == records.end()) return std::nullopt;
  const auto measured = run_rates(records, ranks);
  return measured ? *measured : estimated_rates(first->experiment.settings);
}

}  // namespace

std::optional<StepTimePredictor> taught_predictor(const std::vector<Record>& records, int ranks,
                                                  std::size_t most, const Record* one) {
  const auto rates = rates_among(records, ranks);
  if (!rates) return std::nullopt;
  std::vector<const Record*> own;
  for (const Record& record : records) {
    const bool is_measured = std::holds_alternative<Measured>(record.outcome);
    if (is_measured && record.experiment.ranks == ranks) own.push_back(&record);
  }
  std::vector<const Record*> lessons;
  const std::size_t count = std::min(own.size(), most);
  for (std::size_t i = 0; i < count; ++i) lessons.push_back(own[i * own.size() / count]);
  const auto is_one = [&](const Record* record) {
    return one != nullptr && record->experiment.name == one->experiment.name &&
           record->experiment.ds_config == one->experiment.ds_config;
  };
  if (std::ranges::none_of(lessons, is_one)) {
    const auto left = std::ranges::find_if(own, is_one);
    if (left != own.end()) lessons.push_back(*left);
  }
  StepTimePredictor predictor(*rates);
  std::vector<Experiment> experiments;
  experiments.reserve(lessons.size());
  for (const Record* record : lessons) experiments.push_back(record->experiment);
  predictor.walk_ahead(experiments);
  for (const Record* record : lessons) {
    predictor.learn(record->experiment, std::get<Measured>(record->outcome));
  }
  return predictor;
}

std::string hindsight(const StepTimePredictor& predictor, const Record& record) {
  const auto* measured = std::get_if<Measured>(&record.outcome);
  const auto prediction = predictor.without_own(record.experiment);
  if (measured == nullptr || !prediction) return "";
  const PredictionInterval interval = interval_of(*prediction);
  std::string text = prediction_text(prediction->step_time, (interval.high - interval.low) / 2,
                                     typical_step_time(*measured));
  if (!uses_drive(*measured)) return text;
  return concat(text, "; the drive takes ",
                fixed(predictor.factors()[index_of(StepPart::drive)], 1),
                " times as long as was guessed");
}

}  // namespace dstune
