#include "core/report/tables/ranked.hpp"

#include <algorithm>

namespace dstune {

bool comes_before(Metric metric, const Record& a, const Record& b) {
  const Measured* first = measured_of(a);
  const Measured* second = measured_of(b);
  if (first == nullptr || second == nullptr) return first != nullptr && second == nullptr;
  const double value = metric_value(metric, *first);
  const double other = metric_value(metric, *second);
  if (value != other) return is_better(metric, value, other);
  return first->peak_memory.counted() < second->peak_memory.counted();
}

std::vector<Record> ranked(std::vector<Record> records, Metric metric, const std::string& optimum) {
  std::ranges::stable_sort(
      records, [&](const Record& a, const Record& b) { return comes_before(metric, a, b); });
  std::stable_partition(records.begin(), records.end(), [&](const Record& record) {
    return !optimum.empty() && record.experiment.name == optimum;
  });
  return records;
}

}  // namespace dstune
