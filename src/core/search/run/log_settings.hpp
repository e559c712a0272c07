// The log's first lines: what a run is about to do.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/machine.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// Logs what is begun, with what is known before any worker has answered.
/// @param ranks  rank 0 included
void log_beginning(const TuningConfig& config, int ranks);

/// Logs PreflightReport::summary, in lines that fit the log.
void log_preflight(const std::string& summary);

/// Logs the model, the ranks with their devices and limits, and the warnings about the
/// configuration.
void log_settings(const TuningConfig& config, const Machine& machine,
                  const std::vector<WorkerInfo>& workers);

}  // namespace dstune
