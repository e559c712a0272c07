#include "core/base/files/file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/error.hpp"
#include "core/base/printable.hpp"
#include "core/base/text.hpp"

namespace dstune {

void throw_file_error(std::string_view verb, const std::string& path, int error_code) {
  throw Error(concat("cannot ", verb, " ", printable(path), ": ",
                     std::generic_category().message(error_code)));
}

FileHandle open_file(const std::string& path, int flags) {
  constexpr mode_t kMode = 0666;
  FileHandle file(::open(path.c_str(), flags | O_CLOEXEC, kMode));
  if (!file) throw_file_error("open", path, errno);
  return file;
}

FileHandle create_file(const std::string& path, int flags) {
  constexpr int kNew = O_CREAT | O_EXCL | O_NOFOLLOW;
  // A file that is there was left by a killed process of this number, or was put there by somebody
  // else.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_file_error("replace", path, errno);
  return open_file(path, flags | kNew);
}

void write_all(const FileHandle& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const auto written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error("write", path, errno);
    if (written == 0) throw_file_error("write", path, ENOSPC);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_file(const FileHandle& file, const std::string& path) {
  while (::fsync(file.get()) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == ENOTSUP) return;  // a pipe or device cannot be synced
    throw_file_error("write", path, errno);
  }
}

void sync_parent_directory(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  sync_file(open_file(directory, O_RDONLY | O_DIRECTORY), directory);
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void TemporaryFile::rename_to(const std::string& target) {
  if (std::rename(path_.c_str(), target.c_str()) != 0) throw_file_error("write", target, errno);
  path_.clear();
}

// The process id keeps two runs apart; rename() is atomic within the same directory.
std::string temporary_path(const std::string& path) {
  return concat(path, ".", ::getpid(), ".tmp");
}

void write_file_atomically(const std::string& path, std::string_view text, Durability durability) {
  TemporaryFile temporary(temporary_path(path));
  {
    const auto file = create_file(temporary.path(), O_WRONLY);
    write_all(file, text, path);
    if (durability == Durability::power_loss) sync_file(file, path);
  }
  temporary.rename_to(path);
  if (durability == Durability::power_loss) sync_parent_directory(path);
}

bool overwrite_file(const std::string& path, std::string_view text) noexcept {
  const FileHandle file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const auto size = static_cast<ssize_t>(text.size());
  return ::pwrite(file.get(), text.data(), text.size(), 0) == size &&
         ::ftruncate(file.get(), size) == 0 && ::fsync(file.get()) == 0;
}

std::string read_text_file(const std::string& path, Bytes limit) {
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_file_error("read", path, errno);
  return read_all(file, path, limit);
}

std::string read_all(const FileHandle& file, const std::string& path, Bytes limit) {
  std::string text;
  struct stat found {};
  if (::fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode)) {
    constexpr Bytes kMostAtOnce = Bytes{128} << 20U;  // a file with holes may claim any size
    text.reserve(std::min({static_cast<Bytes>(found.st_size), limit, kMostAtOnce}));
  }
  std::array<char, 65536> block{};
  for (;;) {
    const auto count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_file_error("read", path, errno);
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > limit) {
      throw Error(concat("cannot read ", path, ": longer than ", format_bytes(limit)));
    }
  }
}

void ensure_directory(const std::string& path) {
  std::error_code fault;
  std::filesystem::create_directories(path, fault);
  if (fault) throw_file_error("make directory", path, fault.value());
  if (!std::filesystem::is_directory(path, fault)) {
    throw_file_error("make directory", path, ENOTDIR);
  }
}

}  // namespace dstune
