#include "core/search/tuner/deciding_measurement.hpp"

#include <algorithm>
#include <variant>

#include "core/search/tuner/finalists.hpp"

namespace dstune {
namespace {

const Measured* measured_of(const Record& record) { return std::get_if<Measured>(&record.outcome); }

bool is_measured_repetition(const Record& record) {
  return record.experiment.repetition > 0 && measured_of(record) != nullptr;
}

}  // namespace

const Measured* deciding_measurement(const Record& record, const std::vector<Record>& records) {
  if (std::ranges::none_of(records, is_measured_repetition)) return measured_of(record);
  std::vector<const Measured*> repetitions;
  for (const Record& other : records) {
    const bool is_its = other.experiment.ds_config == record.experiment.ds_config;
    if (is_its && is_measured_repetition(other)) repetitions.push_back(measured_of(other));
  }
  if (repetitions.empty()) return nullptr;
  std::ranges::stable_sort(repetitions, {},
                           [](const Measured* each) { return typical_step_time(*each); });
  return repetitions[(repetitions.size() - 1) / 2];
}

std::optional<std::pair<const Measured*, const Measured*>> comparable_measurements(
    const Record& a, const Record& b, const std::vector<Record>& records) {
  const auto pair_of = [](const Measured* first, const Measured* second) {
    const bool has_both = first != nullptr && second != nullptr;
    return has_both ? std::optional(std::pair(first, second)) : std::nullopt;
  };
  const auto decided = pair_of(deciding_measurement(a, records), deciding_measurement(b, records));
  const auto first = pair_of(measured_of(a), measured_of(b));
  if (decided || !first) return decided;
  return overlaps_another(a, records) || overlaps_another(b, records) ? std::nullopt : first;
}

}  // namespace dstune
