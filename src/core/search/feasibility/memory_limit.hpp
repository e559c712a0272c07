// The memory limit of a run: the user's, or one that fits all workers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

struct MemoryLimit {
  Bytes bytes = 0;  ///< per rank
  /// The limit's origin, for the log; "" if it is the user's or the device's own.
  std::string origin;
};

/// The limits with which an earlier run began; 0: not known.
struct EarlierLimits {
  Bytes memory = 0;
  Bytes host_memory = 0;
};

/// Whether the backend's devices live in the memory of the host.
bool lives_on_host(const std::string& backend, const std::vector<DeviceInfo>& devices);

/// How the memory limit counts: as the user says, or as the backend's users run.
AllocatorModel allocator_of(const TuningConfig& config, const std::string& backend);

/// The user's limit, or else the least that any worker may take. That is its own device's memory,
/// or the part of the host's memory that its narrowest MemoryRoom lets it use. On a device whose
/// limit is its free memory (DeviceInfo) it is the free memory less the device's reserves for this
/// way of counting, because other processes have the rest; workers that share a GPU get equal
/// parts. Such a limit may differ at every start, and experiments are equal only under equal
/// limits, so a run that goes on keeps the limit with which it began; on a host it does so only if
/// the host's bounds allow that much.
///
/// @param workers  at least one, all of which have the backend
/// @param earlier  the limit of the run that goes on; 0: none is known
/// @throws ConfigError  if a device has less free memory than its reserves
MemoryLimit memory_limit_of_run(const TuningConfig& config, const std::string& backend,
                                const std::vector<WorkerInfo>& workers, Bytes earlier = 0);

/// A worker's part of what a user allows a node; 0 if he gave no limit, else at least 1.
Bytes part_of_node(const std::optional<Bytes>& limit, int on_each_host);

/// A worker's part of the user's host_memory_limit, which is a node's; nothing if he gave none.
std::optional<Bytes> users_host_memory_limit(const TuningConfig& config, int on_each_host);

/// RunSettings::host_memory_limit. The user's limit, which is a node's, divided by the workers of
/// the host that has most; or what the narrowest MemoryRoom of any worker leaves beside what a
/// device takes that lives in the same memory, in whole GiB if it is large. 0 (one limit for both)
/// where nothing can be offloaded, and on such a device unless the user limits its memory. A run
/// that goes on keeps its limit if the hosts' bounds allow that much.
/// @param earlier  the limit of the run that goes on; 0: none is known
Bytes host_memory_limit_of_run(const TuningConfig& config, const std::string& backend,
                               const std::vector<WorkerInfo>& workers, Bytes earlier = 0);
/// The same for a plan, whose hosts are not known: kNoLimit unless the user limits them.
/// @param here          the devices of this machine
/// @param on_each_host  the workers of the host that has most
Bytes host_memory_limit_of_plan(const TuningConfig& config, const std::string& backend,
                                const std::vector<DeviceInfo>& here, int on_each_host);

/// A warning if a worker has less free memory than `limit`, with which an earlier run began; "" if
/// none has, or where limits do not depend on free memory.
std::string shortage_of_free_memory(Bytes limit, const std::string& backend,
                                    const std::vector<WorkerInfo>& workers,
                                    AllocatorModel allocator);

}  // namespace dstune
