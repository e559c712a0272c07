#include "core/search/tuners/compare/deciding_measurement.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/base/json.hpp"
#include "core/search/tuners/contenders.hpp"

namespace dstune {
namespace {

bool is_measured_repetition(const Record& record) {
  return record.experiment.repetition > 0 && measured_of(record) != nullptr;
}

const Measured* middle_of(std::vector<const Measured*> repetitions) {
  if (repetitions.empty()) return nullptr;
  std::ranges::stable_sort(repetitions, {},
                           [](const Measured* each) { return typical_step_time(*each); });
  return repetitions[(repetitions.size() - 1) / 2];
}

}  // namespace

std::string configuration_key(const Record& record) {
  return to_json_text(sorted_by_key(record.experiment.ds_config), 0);
}

Comparison::Comparison(const Record& one, const std::vector<Record>& records)
    : one_(one), records_(records), configuration_(configuration_key(one)) {
  for (const Record& record : records) {
    if (!is_measured_repetition(record)) continue;
    repeats_ = true;
    repetitions_[configuration_key(record)].push_back(measured_of(record));
  }
}

const Measured* Comparison::deciding(const Record& record) const {
  if (!repeats_) return measured_of(record);
  const auto found = repetitions_.find(configuration_key(record));
  return found == repetitions_.end() ? nullptr : middle_of(found->second);
}

bool Comparison::is_one(const Record& other) const {
  return configuration_key(other) == configuration_;
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

const Measured* deciding_measurement(const Record& record, const std::vector<Record>& records) {
  return Comparison(record, records).deciding(record);
}

std::optional<std::pair<const Measured*, const Measured*>> comparable_measurements(
    const Record& a, const Record& b, const std::vector<Record>& records) {
  return Comparison(a, records).with(b);
}

}  // namespace dstune
