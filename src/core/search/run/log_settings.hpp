// What a run is about to do, said before it begins.
#pragma once

#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// The model, the ranks, what they have and may use, and the warnings about the configuration, to
/// the log.
void log_settings(const TuningConfig& config, const Machine& machine,
                  const std::vector<WorkerInfo>& workers);

}  // namespace dstune
