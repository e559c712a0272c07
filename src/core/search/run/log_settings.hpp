// The log's first lines: what a run is about to do.
#pragma once

#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// Logs the model, the ranks with their devices and limits, and the warnings about the
/// configuration.
void log_settings(const TuningConfig& config, const Machine& machine,
                  const std::vector<WorkerInfo>& workers);

}  // namespace dstune
