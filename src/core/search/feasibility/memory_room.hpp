// How much of its host's memory a worker may have: every bound that applies to it, and the workers
// that share the bound.
#pragma once

#include <string>
#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// The memory that one bound leaves to a worker.
struct MemoryRoom {
  std::string name;  ///< "host nodeA", "control group /job (memory.max)", "ulimit -v"
  Bytes bytes = 0;   ///< the most that all processes under the bound may have together
  Bytes free = 0;    ///< the part of `bytes` that was free when the workers started
  Bytes beside = 0;  ///< bytes that each process takes beside the buffers of an experiment
  int sharers = 1;   ///< the number of workers under the bound

  /// The bytes for a worker if no other process used any: its part of 85 % of the bound, or of the
  /// memory that the workers and rank 0 leave for experiments, if that is less.
  Bytes nominal() const;
  /// The bytes that a worker can use: nominal(), or its part of the free memory, if that is less.
  Bytes usable() const;
  /// The bound for people: "85 % of the 3.00 GiB of control group /job (memory.max), for 2
  /// workers".
  std::string describe() const;
};

/// The bounds on `worker`, of which `device` is a device that shares the host's memory. The host's
/// own bound comes first; the list is never empty.
/// @param workers  all workers of the run, `worker` among them
std::vector<MemoryRoom> memory_rooms(const WorkerInfo& worker, const DeviceInfo& device,
                                     const std::vector<WorkerInfo>& workers);

/// The room of which least can be used.
MemoryRoom narrowest_room(const std::vector<MemoryRoom>& rooms);

/// A line for each bound that `limit` for each worker would exceed, with both figures and the host.
/// Only the worst bound of a worker is named.
/// @param whose         "memory_limit is", "the memory limit of the resumed run is"
/// @param against_free  the free memory counts, not only the bound
std::vector<std::string> exceeded_rooms(const std::string& whose, Bytes limit, bool against_free,
                                        const std::string& backend,
                                        const std::vector<WorkerInfo>& workers);

}  // namespace dstune
