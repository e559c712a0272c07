#include "kernels/host/nvme/drive.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#include "core/base/text.hpp"

namespace dstune::host {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInMemory = "is in memory";
constexpr const char* kOverNetwork = "reaches its files over a network";
constexpr const char* kLayers = "shows files of other file systems";

struct KnownKind {
  unsigned long magic;
  const char* name;
  const char* no_drive;
};

// linux/magic.h, and for those that have none there their own sources.
constexpr KnownKind kKinds[] = {
    {0xEF53, "ext4", ""},
    {0x58465342, "xfs", ""},
    {0x9123683E, "btrfs", ""},
    {0xF2F52010, "f2fs", ""},
    {0x2FC12FC1, "zfs", ""},
    {0xCA451A4E, "bcachefs", ""},
    {0x4D44, "vfat", ""},
    {0x2011BAB0, "exfat", ""},
    {0x7366746E, "ntfs3", ""},
    {0x01021994, "tmpfs", kInMemory},
    {0x858458F6, "ramfs", kInMemory},
    {0x958458F6, "hugetlbfs", kInMemory},
    {0x794C7630, "overlay", kLayers},
    {0x65735546, "FUSE", kLayers},
    {0x6969, "NFS", kOverNetwork},
    {0xFF534D42, "CIFS", kOverNetwork},
    {0xFE534D42, "SMB", kOverNetwork},
    {0x517B, "SMB", kOverNetwork},
    {0x01021997, "9p", kOverNetwork},
    {0x00C36400, "Ceph", kOverNetwork},
    {0x0BD00BD0, "Lustre", kOverNetwork},
    {0x47504653, "GPFS", kOverNetwork},
    {0x19830326, "BeeGFS", kOverNetwork},
    {0x5346414F, "AFS", kOverNetwork},
};

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(trim(line));
}

/// The folder of the system's block device `device`, or of the whole drive of which it is a part.
fs::path block_device(dev_t device) {
  std::error_code fault;
  const fs::path path =
      fs::canonical(concat("/sys/dev/block/", ::major(device), ":", ::minor(device)), fault);
  if (fault) return {};
  return fs::exists(path / "queue", fault) ? path : path.parent_path();
}

void look_at_block_device(dev_t device, DriveFacts& facts) {
  const fs::path path = block_device(device);
  if (path.empty()) return;
  const std::string model = first_line(path / "device/model");
  facts.drive = path.filename().string();
  if (!model.empty()) facts.drive += concat(" (", model, ")");
  const std::string rotational = first_line(path / "queue/rotational");
  if (!rotational.empty()) facts.is_rotational = rotational != "0";
  std::istringstream(first_line(path / "queue/logical_block_size")) >> facts.logical_block;
}

FileError look_error(const std::string& operation, const std::string& directory, int code) {
  return {.operation = operation, .file = directory, .code = code, .remark = {}};
}

}  // namespace

bool DriveFacts::is_in_memory() const { return no_drive == kInMemory; }

FileSystemKind kind_of_file_system(unsigned long magic) {
  for (const KnownKind& kind : kKinds) {
    if (kind.magic == magic) return {kind.name, kind.no_drive};
  }
  std::ostringstream number;
  number << "0x" << std::hex << magic;
  return {number.str(), ""};
}

OrFileError<DriveFacts> look_at_drive(const std::string& directory) {
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) return look_error("stat", directory, errno);
  if (!S_ISDIR(found.st_mode)) return look_error("stat", directory, ENOTDIR);
  struct statfs file_system {};
  if (::statfs(directory.c_str(), &file_system) != 0) {
    return look_error("statfs", directory, errno);
  }
  // The kernel's type of the number differs between machines; it has 32 bits everywhere.
  const auto kind = kind_of_file_system(static_cast<std::uint32_t>(file_system.f_type));
  DriveFacts facts;
  facts.file_system = kind.name;
  facts.no_drive = kind.no_drive;
  facts.is_read_only = (static_cast<unsigned long>(file_system.f_flags) & ST_RDONLY) != 0;
  facts.free = static_cast<Bytes>(file_system.f_bavail) * static_cast<Bytes>(file_system.f_bsize);
  look_at_block_device(found.st_dev, facts);
  return facts;
}

std::string why_no_sweep(const DriveFacts& facts, Bytes budget) {
  if (!facts.no_drive.empty()) {
    return concat("is on ", facts.file_system, ", which ", facts.no_drive,
                  "; accepted: a directory on a local drive");
  }
  if (facts.is_read_only) return "is mounted read-only; accepted: a directory that can be written";
  if (facts.free / kFreePerBudget < budget) {
    return concat("has ", format_bytes(facts.free), " free; a sweep that may write ",
                  format_bytes(budget), " needs ", kFreePerBudget,
                  " times as much (--nvme-budget)");
  }
  return "";
}

}  // namespace dstune::host
