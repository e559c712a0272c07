#include "core/search/predict/hindsight.hpp"

#include <algorithm>
#include <variant>

#include "core/report/tables/predictions.hpp"
#include "core/search/predict/estimated_rates.hpp"

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

std::optional<StepTimePredictor> taught_predictor(const std::vector<Record>& records, int ranks) {
  const auto rates = rates_among(records, ranks);
  if (!rates) return std::nullopt;
  StepTimePredictor predictor(*rates);
  for (const Record& record : records) {
    const auto* measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr || record.experiment.ranks != ranks) continue;
    predictor.learn(record.experiment, *measured);
  }
  return predictor;
}

std::string hindsight(const StepTimePredictor& predictor, const Record& record) {
  const auto* measured = std::get_if<Measured>(&record.outcome);
  const auto prediction = predictor.without_own(record.experiment);
  if (measured == nullptr || !prediction) return "";
  const PredictionInterval interval = interval_of(*prediction);
  return prediction_text(prediction->step_time, (interval.high - interval.low) / 2,
                         typical_step_time(*measured));
}

}  // namespace dstune
