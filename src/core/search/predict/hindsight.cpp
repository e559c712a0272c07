#include "core/search/predict/hindsight.hpp"

#include <variant>

#include "core/report/tables/predictions.hpp"
#include "core/search/predict/estimated_rates.hpp"

namespace dstune {
namespace {

std::optional<MachineRates> rates_among(const std::vector<Record>& records, int ranks) {
  std::optional<MachineRates> rates;
  for (const Record& record : records) {
    const auto* measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr || record.experiment.ranks != ranks) continue;
    if (measured->machine_rates) return measured->machine_rates;
    if (!rates) rates = estimated_rates(record.experiment.settings);
  }
  return rates;
}

}  // namespace

std::optional<StepTimePredictor> taught_predictor(const std::vector<Record>& records, int ranks,
                                                  const Device* imitated) {
  const auto rates = rates_among(records, ranks);
  if (!rates) return std::nullopt;
  StepTimePredictor predictor(*rates, imitated);
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
                         measured->step_time.median);
}

}  // namespace dstune
