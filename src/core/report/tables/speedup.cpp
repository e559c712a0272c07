#include "core/report/tables/speedup.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"
#include "core/report/tables/announced.hpp"

namespace dstune {
namespace {

const Announced* find_announced(const std::vector<Announced>& all, const std::string& name) {
  const auto found = std::ranges::find_if(
      all, [&](const Announced& each) { return each.record.experiment.name == name; });
  return found == all.end() || found->runs == 0 ? nullptr : &*found;
}

}  // namespace

const Record* find_configuration(const std::vector<Record>& records,
                                 const DeepSpeedConfig& ds_config) {
  const auto found = std::ranges::find_if(records, [&](const Record& record) {
    return record.experiment.repetition == 0 && record.experiment.ds_config == ds_config;
  });
  return found == records.end() ? nullptr : &*found;
}

std::optional<Speedup> speedup(const std::vector<Record>& records, Metric metric,
                               const std::string& best, const std::string& baseline) {
  const std::vector<Announced> all = announced(records);
  const Announced* const fast = find_announced(all, best);
  const Announced* const slow = find_announced(all, baseline);
  if (fast == nullptr || slow == nullptr) return std::nullopt;
  double ratio = metric_value(metric, *measured_of(fast->record)) /
                 metric_value(metric, *measured_of(slow->record));
  if (!is_better(metric, 1, 0)) ratio = 1 / ratio;
  if (!std::isfinite(ratio)) return std::nullopt;
  if (!fast->interval || !slow->interval) return Speedup{ratio};
  return Speedup{ratio, std::hypot(*fast->interval, *slow->interval)};
}

std::string to_text(const Speedup& speedup) {
  const std::string interval =
      speedup.interval ? concat(" +- ", fixed(speedup.ratio * *speedup.interval, 2)) : "";
  return concat(fixed(speedup.ratio, 2), interval, " times");
}

}  // namespace dstune
