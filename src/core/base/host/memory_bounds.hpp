// Bounds that hold memory back from a process beside the memory that its host has.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace dstune {

/// A limit that all processes under it share, or one of this process alone.
struct MemoryBound {
  std::string name;  ///< "control group /sys/fs/cgroup/job_7 (memory.max)", "ulimit -v"
  Bytes bytes = 0;   ///< the most that those under it may have
  Bytes used = 0;    ///< of it, when it was read, without what the kernel would give up
  std::string id;    ///< of processes of one host, equal for those that share it; "": nobody does

  Bytes free() const { return bytes - (used < bytes ? used : bytes); }
  bool operator==(const MemoryBound&) const = default;
};

/// Where the bounds are read.
struct MemorySources {
  std::string root;  ///< stands before every path of a file: "" but in tests
  /// This stands for getenv(); none: the process's own.
  std::function<const char*(const char*)> variable = {};
};

/// Every bound of the calling process: its control groups up to the root, the memory that Slurm
/// gave the job on a host, and what ulimit -v and ulimit -d leave. Empty: it may have all of the
/// host's.
std::vector<MemoryBound> memory_bounds(const MemorySources& sources = {});

/// Why the system has just refused memory, as far as it can be seen: what has least left of all
/// that makes it say no, "ulimit -v has 12.00 MiB left of 512.00 MiB". Control groups do not: under
/// them a process gets its memory and is ended when it uses it.
std::string why_refused(const MemorySources& sources = {});

/// The most memory that this process has had at a time, with pages of files.
Bytes most_resident(const MemorySources& sources = {});

/// From now on the out-of-memory killer ends this process rather than one that has not asked for
/// it: it can be spared, and others of the same job cannot.
void offer_to_oom_killer();

}  // namespace dstune
