// The memory limit that a run would find on the GPU of this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/search/feasibility/machine.hpp"
#include "core/search/feasibility/memory_limit.hpp"

namespace dstune {

/// The limit of a run on these workers; none, with a warning, where nothing is left for it.
std::optional<MemoryLimit> limit_of_workers_here(const TuningConfig& config,
                                                 const std::string& backend,
                                                 const std::vector<WorkerInfo>& workers);

/// The limit of a run whose workers each have a GPU like the first of this machine, which is asked.
/// For a user who sets no limit. None where a limit is no device's free memory, and, with a
/// warning, where the GPU cannot be asked or has nothing left.
/// @param planned  what machine_of_plan() says
std::optional<MemoryLimit> limit_of_gpu_here(const TuningConfig& config, const Machine& planned,
                                             const LocalBackends& backends);

}  // namespace dstune
