#include "core/report/files/free_space.hpp"

#include <filesystem>
#include <system_error>

#include <sys/statvfs.h>

#include "core/base/text.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

// A hundred experiments take about 3 MB with their journal, and 600 files.
constexpr Bytes kEnough = Bytes{16} << 20U;
constexpr std::uint64_t kEnoughFiles = 1000;

}  // namespace

FreeSpace look_for_space(const std::string& directory) {
  std::error_code fault;
  fs::path existing = fs::absolute(directory, fault);
  while (!fs::exists(existing, fault) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  struct statvfs found {};
  if (::statvfs(existing.c_str(), &found) != 0) return {};
  return {found.f_blocks > 0, static_cast<Bytes>(found.f_bavail) * found.f_frsize,
          found.f_files > 0, found.f_favail};
}

std::string find_shortage(const FreeSpace& space) {
  if (space.known && space.bytes < kEnough) {
    return concat("has ", format_bytes(space.bytes), " of free space, and a run may need ",
                  format_bytes(kEnough));
  }
  if (space.files_known && space.files < kEnoughFiles) {
    return concat("has room for ", space.files, " files only, and a run may need ", kEnoughFiles);
  }
  return "";
}

}  // namespace dstune
