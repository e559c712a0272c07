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

/// The memory that a group may have, and which of its files says so: "memory.max".
struct GroupLimit {
  Bytes bytes = 0;
  std::string file;
};

/// The calling process's own group, then those above it that it can see. Whatever cannot be read is
/// taken not to be there, here and below.
/// @param root  stands before every path of a file; "" but in tests
std::vector<ControlGroup> memory_groups(const std::string& root = "");

/// None if it has no limit of its own. Version 2: the lower of memory.max and memory.high, above
/// which everything in it slows to a crawl.
std::optional<GroupLimit> limit_of(const ControlGroup& group, const std::string& root = "");

/// Version 1: the lowest limit above `group`, also of groups that cannot be seen from here.
std::optional<Bytes> hierarchical_limit_of(const ControlGroup& group, const std::string& root = "");

/// The memory that it has, without what the kernel would give up first: the pages of files.
Bytes used_in(const ControlGroup& group, const std::string& root = "");

/// Processes of `group` that the out-of-memory killer has ended; version 2: and of those below it.
std::optional<std::uint64_t> oom_kills_in(const ControlGroup& group, const std::string& root = "");

/// The same count of the whole host, since it started.
std::optional<std::uint64_t> oom_kills_of_host(const std::string& root = "");

/// The content of a file of the kernel; "" if it cannot be read.
std::string read_kernel_file(const std::string& path);

/// The number behind `key` in lines of "key number", or of "key: number".
std::optional<Bytes> number_of(std::string_view text, std::string_view key);

}  // namespace dstune
