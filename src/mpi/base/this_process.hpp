// What the calling process tells rank 0 about itself, and which other processes it can see.
#pragma once

#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// Describes the calling process, except for workers_on_host, which rank 0 fills in.
/// @param devices  the devices that its backends found
WorkerInfo describe_this_process(int rank, std::vector<DeviceInfo> devices = {});

/// True if `mine` and `other` share host and process space, so that vanished() can be trusted.
bool sees_process(const WorkerInfo& mine, const WorkerInfo& other);

/// True if the process `pid` of this process space no longer exists.
bool vanished(int pid);

}  // namespace dstune
