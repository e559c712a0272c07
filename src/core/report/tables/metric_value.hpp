// The tuned metric of a measured experiment, in DeepSpeed's units.
#pragma once

#include <string_view>

#include "core/config/tuning_config.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// DeepSpeed's key and unit of metrics.json: throughput in samples/s, latency in us per optimizer
/// step, FLOPS_per_gpu in FLOP/s; and our tokens_per_s.
double metric_value(Metric metric, const Measured& measured);
std::string_view metric_key(Metric metric);

/// True if `value` is the better one: larger, for latency smaller.
bool is_better(Metric metric, double value, double other);

}  // namespace dstune
