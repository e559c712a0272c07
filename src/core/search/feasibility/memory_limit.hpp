// The memory limit of a run, where the user sets none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

struct MemoryLimit {
  Bytes bytes = 0;     ///< per rank
  std::string origin;  ///< where it comes from, for the log; "": it is the user's, or the device's
};

/// The user's, or else the least that a worker may take: its own device's memory, or what its
/// narrowest MemoryRoom lets it use of a host's. Of a device whose limit is its free memory
/// (DeviceInfo), what is free less its reserves, as other processes have the rest; workers that
/// share a GPU have equal parts. Such a limit may be another at every start, and experiments are
/// equal only under equal limits, so a run that goes on keeps the one it began with; on a host, if
/// there is so much by its bounds.
///
/// @param workers  all of which have the backend, at least one
/// @param earlier  of the run that goes on
/// @throws ConfigError  if a device has less free than its reserves
MemoryLimit memory_limit_of_run(const TuningConfig& config, const std::string& backend,
                                const std::vector<WorkerInfo>& workers,
                                std::optional<Bytes> earlier = {});

/// That a worker has less free than `limit`, which an earlier run began with; "" if none has, or
/// where limits are not by what is free.
std::string shortage_of_free_memory(Bytes limit, const std::string& backend,
                                    const std::vector<WorkerInfo>& workers);

/// The limit of the last experiment in the journal at `path`; none if there is none.
/// @throws ConfigError  if the file is no journal of ours
std::optional<Bytes> earlier_memory_limit(const std::string& path);

}  // namespace dstune
