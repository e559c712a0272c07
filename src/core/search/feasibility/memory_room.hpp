// How much of its host's memory a worker may have: every bound that it is under, and who shares it.
#pragma once

#include <string>
#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// What one bound leaves to a worker.
struct MemoryRoom {
  std::string name;  ///< "host nodeA", "control group /job (memory.max)", "ulimit -v"
  Bytes bytes = 0;   ///< the most that those under the bound may have
  Bytes free = 0;    ///< of it, when the workers started
  Bytes beside = 0;  ///< what each process takes beside the buffers of an experiment
  int sharers = 1;   ///< workers under it

  /// For a worker, if nobody else were there: its part of 85 %, or of what the workers and rank 0
  /// leave of it beside their experiments, if that is less.
  Bytes nominal() const;
  /// nominal(), or its part of what is free, if that is less.
  Bytes usable() const;
  /// "85 % of the 3.00 GiB of control group /job (memory.max), for 2 workers"
  std::string describe() const;
};

/// Of `worker`, whose shared `device` is one of its own: that of the host first. Never empty.
/// @param workers  of the run, `worker` among them
std::vector<MemoryRoom> memory_rooms(const WorkerInfo& worker, const DeviceInfo& device,
                                     const std::vector<WorkerInfo>& workers);

/// The one of them that has least to use.
MemoryRoom narrowest_room(const std::vector<MemoryRoom>& rooms);

/// A line for each bound that `limit` for each worker would exceed, all of it or what is free: both
/// figures, on which host. Only the worst bound of a worker is named.
/// @param whose         "memory_limit is", "the memory limit of the run that goes on is"
/// @param against_free  what is free counts, not only what there is
std::vector<std::string> exceeded_rooms(const std::string& whose, Bytes limit, bool against_free,
                                        const std::string& backend,
                                        const std::vector<WorkerInfo>& workers);

}  // namespace dstune
