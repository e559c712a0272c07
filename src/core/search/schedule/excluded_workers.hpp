// The workers that the user leaves out (dstune.exclude).
#pragma once

#include <string>
#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// The ranks of `workers` that `names` mean: "rank 3", a host (also without its domain), the id of
/// a device, or "HOST:INDEX", the device of that index on a host. Ascending, each once.
/// @param source  the path of CONFIG.json, for messages
/// @throws ConfigError  for names that mean no worker, and if nobody is left
std::vector<int> excluded_ranks(const std::vector<std::string>& names,
                                const std::vector<WorkerInfo>& workers, const std::string& source);

/// The others of `workers`, who know only each other: those who are left out take no part of a
/// host's cores and memory.
std::vector<WorkerInfo> without_ranks(std::vector<WorkerInfo> workers,
                                      const std::vector<int>& excluded);

}  // namespace dstune
