#include "core/search/tuners/compare/deciding_measurement.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/report/tables/announced.hpp"
#include "core/search/tuners/contenders.hpp"

namespace dstune {
namespace {

bool is_measured_repetition(const Record& record) {
  return record.experiment.repetition > 0 && measured_of(record) != nullptr;
}

}  // namespace

Comparison::Comparison(const Record& one, const std::vector<Record>& records)
    : one_(one), records_(records) {
  for (const Record& record : records) {
    if (!is_measured_repetition(record)) continue;
    const DeepSpeedConfig& config = record.experiment.ds_config;
    auto known = std::ranges::find(repetitions_, config, &Repetitions::config);
    if (known == repetitions_.end()) known = repetitions_.insert(known, {config, {}, {}});
    known->measured.push_back(measured_of(record));
  }
  for (Repetitions& each : repetitions_) each.mean = mean_of(each.measured);
}

const Measured* Comparison::deciding(const Record& record) const {
  if (repetitions_.empty()) return measured_of(record);
  const auto found =
      std::ranges::find(repetitions_, record.experiment.ds_config, &Repetitions::config);
  return found == repetitions_.end() ? nullptr : &found->mean;
}

bool Comparison::is_one(const Record& other) const {
  return other.experiment.ds_config == one_.experiment.ds_config;
}

std::optional<std::pair<const Measured*, const Measured*>> Comparison::with(
    const Record& other) const {
  const Measured* ours = deciding(one_);
  const Measured* theirs = deciding(other);
  if (ours != nullptr && theirs != nullptr) return std::pair(ours, theirs);
  ours = measured_of(one_);
  theirs = measured_of(other);
  const bool has_both = ours != nullptr && theirs != nullptr;
  if (!has_both || overlaps_another(one_, records_) || overlaps_another(other, records_)) {
    return std::nullopt;
  }
  return std::pair(ours, theirs);
}

std::optional<Measured> deciding_measurement(const Record& record,
                                             const std::vector<Record>& records) {
  const Comparison comparison(record, records);
  const Measured* deciding = comparison.deciding(record);
  return deciding == nullptr ? std::nullopt : std::optional(*deciding);
}

std::optional<std::pair<Measured, Measured>> comparable_measurements(
    const Record& a, const Record& b, const std::vector<Record>& records) {
  const Comparison comparison(a, records);
  const auto pair = comparison.with(b);
  return pair ? std::optional(std::pair(*pair->first, *pair->second)) : std::nullopt;
}

}  // namespace dstune
