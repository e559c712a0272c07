// The control groups whose memory a process shares, as the kernel's files describe them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"

namespace dstune {

/// A control group with the controller of memory, of version 1 or 2.
struct ControlGroup {
  int version = 2;
  std::string path;  ///< its folder, as this process sees it: "/sys/fs/cgroup/memory/job_7"
};

/// The memory that a group may have, and the file that says so: "memory.max".
struct GroupLimit {
  Bytes bytes = 0;
  std::string file;
};

/// The calling process's own group, then the groups above it that it can see. What cannot be read
/// is taken as absent, here and in the functions below.
/// @param root  is put before every path of a file; "" except in tests
std::vector<ControlGroup> memory_groups(const std::string& root = "");

/// The group's own limit; none if it has none. In version 2 it is the lower of memory.max and
/// memory.high, above which everything in the group slows to a crawl.
std::optional<GroupLimit> limit_of(const ControlGroup& group, const std::string& root = "");

/// The lowest limit above `group`, including groups that cannot be seen from here; version 1 only.
std::optional<Bytes> hierarchical_limit_of(const ControlGroup& group, const std::string& root = "");

/// The memory that the group has, without the pages of files, which the kernel would give up first.
Bytes used_in(const ControlGroup& group, const std::string& root = "");

/// The number of processes of `group` that the out-of-memory killer has ended; in version 2 also
/// those of the groups below it.
std::optional<std::uint64_t> oom_kills_in(const ControlGroup& group, const std::string& root = "");

/// The same count of the whole host, since it started.
std::optional<std::uint64_t> oom_kills_of_host(const std::string& root = "");

/// The content of a file of the kernel; "" if it cannot be read.
std::string read_kernel_file(const std::string& path);

/// The number behind `key` in lines of "key number", or of "key: number".
std::optional<Bytes> number_of(std::string_view text, std::string_view key);

}  // namespace dstune
