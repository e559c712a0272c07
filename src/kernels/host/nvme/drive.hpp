// What lies behind a directory: its file system and its drive, and whether a sweep may write there.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "core/base/units.hpp"
#include "kernels/host/nvme/file_error.hpp"

namespace dstune::host {

struct DriveFacts {
  std::string file_system;  ///< "ext4", or its magic number "0x9123683e"
  bool is_read_only = false;
  Bytes free = 0;     ///< for this user; quotas are not seen
  std::string drive;  ///< "nvme0n1 (Samsung SSD 990 PRO)", or "" if the system does not say
  std::optional<bool> is_rotational = {};
  Bytes logical_block = 0;  ///< 0: not known
  /// Why files there are no measure of a local drive ("is in memory"); "" if they are.
  std::string no_drive;

  /// What is written there takes memory: tmpfs and ramfs.
  bool is_in_memory() const;
};

/// @returns a FileError if `directory` is none, or cannot be looked at
OrFileError<DriveFacts> look_at_drive(const std::string& directory);

/// What is known of file systems by the magic numbers of statfs(2): its name, and DriveFacts'
/// no_drive.
struct FileSystemKind {
  std::string name;
  std::string no_drive;
};
FileSystemKind kind_of_file_system(unsigned long magic);

/// A sweep needs so many times its budget free: a full drive is slow, and others write, too.
inline constexpr Bytes kFreePerBudget = 4;

/// Why no sweep may write `budget` bytes there, as what a directory is: "is on tmpfs, which is in
/// memory; ..."; or "".
std::string why_no_sweep(const DriveFacts& facts, Bytes budget);

}  // namespace dstune::host
