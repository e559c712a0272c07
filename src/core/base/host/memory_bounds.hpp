// The bounds on a process's memory, apart from the memory that its host has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace dstune {

/// A limit on all processes under it together, or on this process alone.
struct MemoryBound {
  std::string name;  ///< "control group /sys/fs/cgroup/job_7 (memory.max)", "ulimit -v"
  Bytes bytes = 0;   ///< the most that the processes under it may have
  Bytes used = 0;    ///< memory in use when this was read, without what the kernel would give up
  std::string id;    ///< equal for processes of one host that share the bound; "": nobody shares it

  Bytes free() const { return bytes - (used < bytes ? used : bytes); }
  bool operator==(const MemoryBound&) const = default;
};

/// Where the bounds are read from.
struct MemorySources {
  std::string root;  ///< is put before every path of a file; "" except in tests
  /// Stands for getenv(); none: getenv() of this process.
  std::function<const char*(const char*)> variable = {};
};

/// Every bound of the calling process: its control groups up to the root, the memory that Slurm
/// gave the job on a host, and what ulimit -v and ulimit -d leave. Empty: the process may have all
/// of the host's memory.
std::vector<MemoryBound> memory_bounds(const MemorySources& sources = {});

/// Why the system has just refused memory, as far as that can be seen: of all bounds that make it
/// refuse, the one with least left, "ulimit -v has 12.00 MiB left of 512.00 MiB". Control groups do
/// not refuse: under them a process gets its memory and is ended when it uses it.
std::string why_refused(const MemorySources& sources = {});

/// The most memory that this process has had at a time, including pages of files.
Bytes most_resident(const MemorySources& sources = {});

/// From now on the out-of-memory killer ends this process before one that has not called this: this
/// process can be spared, and others of the same job cannot.
void offer_to_oom_killer();

}  // namespace dstune
