// By how much the optimum is faster than the configuration that the user had.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/experiment/deepspeed_config.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// How many times as fast as another a configuration is, by a metric.
struct Speedup {
  double ratio = 1;
  /// Half of the interval of 95 % about the ratio, relative to it, by those of both
  /// (Announced::interval), whose errors are independent; none where one of them has none.
  std::optional<double> interval = std::nullopt;
};

/// The record of the configuration `ds_config` itself, which is no repetition; nullptr if there is
/// none.
const Record* find_configuration(const std::vector<Record>& records,
                                 const DeepSpeedConfig& ds_config);

/// How many times as fast as `baseline` the experiment called `best` is, by what is announced() of
/// both; none unless both were measured.
std::optional<Speedup> speedup(const std::vector<Record>& records, Metric metric,
                               const std::string& best, const std::string& baseline);

/// "1.31 +- 0.03 times"; "1.31 times" without an interval.
std::string to_text(const Speedup& speedup);

}  // namespace dstune
