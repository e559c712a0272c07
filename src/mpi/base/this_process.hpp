// The calling process as rank 0 is told of it, and which processes it can see.
#pragma once

#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// The calling process; workers_on_host is rank 0's to fill in.
/// @param devices  what its backends found
WorkerInfo describe_this_process(int rank, std::vector<DeviceInfo> devices = {});

/// True if `mine` and `other` share host and process space, so that vanished() can be trusted.
bool sees_process(const WorkerInfo& mine, const WorkerInfo& other);

/// True if there is no process `pid` any more.
bool vanished(int pid);

}  // namespace dstune
