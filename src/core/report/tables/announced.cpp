#include "core/report/tables/announced.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

/// A configuration and its measured repetitions.
struct Repeated {
  Announced announced;
  std::vector<const Measured*> runs = {};
};

bool is_measured_repetition(const Record& record) {
  return record.experiment.repetition > 0 && measured_of(record) != nullptr;
}

std::vector<Repeated> by_configuration(const std::vector<Record>& records) {
  std::vector<Repeated> all;
  for (const Record& record : records) {
    if (record.experiment.repetition == 0) all.push_back({{record}});
  }
  for (const Record& record : records) {
    if (!is_measured_repetition(record)) continue;
    const auto own = std::ranges::find_if(all, [&](const Repeated& each) {
      return each.announced.record.experiment.ds_config == record.experiment.ds_config;
    });
    if (own != all.end()) own->runs.push_back(measured_of(record));
  }
  return all;
}

std::vector<double> log_times(const std::vector<const Measured*>& runs) {
  std::vector<double> times;
  times.reserve(runs.size());
  for (const Measured* run : runs) times.push_back(std::log(typical_step_time(*run)));
  return times;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The logarithm of the speed of the configuration; throughput, as latency says nothing of the
/// batch.
double log_speed_of(const Measured& measured) { return std::log(measured.samples_per_s); }

/// The number of repeated configurations whose means are within two standard errors of this one's,
/// itself among them.
int near(const Repeated& one, const std::vector<Repeated>& all, double sd) {
  int count = 0;
  for (const Repeated& other : all) {
    if (other.runs.empty()) continue;
    const double error = sd * std::sqrt(1 / static_cast<double>(one.runs.size()) +
                                        1 / static_cast<double>(other.runs.size()));
    const double apart = log_speed_of(*measured_of(one.announced.record)) -
                         log_speed_of(*measured_of(other.announced.record));
    count += std::abs(apart) <= 2 * error ? 1 : 0;
  }
  return count;
}

}  // namespace

Measured mean_of(std::vector<const Measured*> runs) {
  std::ranges::stable_sort(runs, {}, [](const Measured* run) { return typical_step_time(*run); });
  Measured result = *runs[(runs.size() - 1) / 2];
  const double factor = std::exp(mean(log_times(runs))) / typical_step_time(result);
  if (!std::isfinite(factor) || runs.size() < 2) return result;
  for (Seconds* time : {&result.step_time.median, &result.step_time.min, &result.step_time.max}) {
    *time *= factor;
  }
  if (result.varying) result.varying->mean_step_time *= factor;
  for (double* rate : {&result.samples_per_s, &result.tokens_per_s, &result.flops_per_s_per_rank}) {
    *rate /= factor;
  }
  return result;
}

std::vector<Announced> announced(const std::vector<Record>& records) {
  constexpr double kOutside = 0.05;
  std::vector<Repeated> all = by_configuration(records);
  std::vector<std::vector<double>> groups;
  for (Repeated& each : all) {
    Record& record = each.announced.record;
    if (!each.runs.empty()) record.outcome = mean_of(each.runs);
    groups.push_back(log_times(each.runs));
  }
  const Spread spread = pooled_spread(groups);
  std::vector<Announced> result;
  for (Repeated& each : all) {
    Announced& configuration = each.announced;
    const Measured* measured = measured_of(configuration.record);
    const auto runs = static_cast<double>(each.runs.size());
    if (measured != nullptr) configuration.runs = std::max(static_cast<int>(runs), 1);
    if (runs > 1) {
      const double chance = 2 * kOutside / std::max(2, near(each, all, spread.sd));
      configuration.interval =
          student_quantile(chance, spread.freedom) * spread.sd / std::sqrt(runs);
    } else if (measured != nullptr) {
      configuration.interval = relative_interval(*measured);
    }
  }
  result.reserve(all.size());
  for (Repeated& each : all) result.push_back(std::move(each.announced));
  return result;
}

std::vector<Record> records_of(const std::vector<Announced>& configurations) {
  std::vector<Record> records;
  records.reserve(configurations.size());
  for (const Announced& each : configurations) records.push_back(each.record);
  return records;
}

std::string figures_text(const Announced& configuration) {
  const Measured* measured = measured_of(configuration.record);
  if (measured == nullptr) return "";
  std::string interval;
  if (configuration.interval) {
    interval = concat(
        " +- ", fixed(*configuration.interval * 100, 1), " % (95 %, ",
        configuration.runs > 1 ? concat(configuration.runs, " runs") : "the steps of one run", ")");
  }
  return concat(format_seconds(typical_step_time(*measured)), " per step", interval, ", ",
                fixed(measured->samples_per_s, 2), " samples/s, peak ",
                format_bytes(measured->peak_memory.allocated));
}

}  // namespace dstune
