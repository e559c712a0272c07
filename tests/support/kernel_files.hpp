// Made-up files of /proc and /sys, for what reads them behind a root.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/temporary_directory.hpp"

namespace dstune::testing_support {

class KernelFiles {
 public:
  const std::string& root() const { return directory_.path(); }

  /// "/proc/self/cgroup" and its text.
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file(root() + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  /// A folder of a control group, with some files; others stay as they were.
  void group(const std::string& path, const std::map<std::string, std::string>& files) {
    std::filesystem::create_directories(root() + path);
    for (const auto& [name, text] : files) write(path + "/" + name, text);
  }

  /// Control groups of version 2 at /sys/fs/cgroup, where the process is in `path`.
  void unified(const std::string& path) {
    write("/proc/self/cgroup", "0::" + path + "\n");
    write("/proc/self/mountinfo",
          "24 1 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  /// Control groups of version 1 at /sys/fs/cgroup/memory, where the process is in `path`.
  void first_version(const std::string& path) {
    write("/proc/self/cgroup", "4:memory:" + path + "\n1:name=systemd:/\n0::/\n");
    write("/proc/self/mountinfo",
          "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  }

  /// What ulimit -v and ulimit -d say, in bytes, or "unlimited".
  void limits(const std::string& address_space, const std::string& data) {
    write("/proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max data size             " +
              data +
              "            unlimited            bytes     \n"
              "Max address space         " +
              address_space + "            unlimited            bytes     \n");
  }

 private:
  MemoryDirectory directory_;
};

}  // namespace dstune::testing_support
