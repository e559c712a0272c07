// DeepSpeed's "autotuning" section.
#pragma once

#include <string_view>

#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"

namespace dstune {

constexpr std::string_view kMetrics = "throughput|latency|flops";
/// The metric of one of these names.
Metric metric_of(std::string_view name);

/// Reads `section` (an object, or else that is the problem). Notes for the user are added to
/// `warnings`.
AutotuningConfig read_autotuning(const json::value& section, Problems& problems,
                                 std::vector<std::string>& warnings);

}  // namespace dstune
