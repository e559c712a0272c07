// Files that survive a crash: each is written whole or not at all, and every fault names its path
// and reason.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "core/base/unique_handle.hpp"
#include "core/base/units.hpp"

namespace dstune {

struct FileTraits {
  using Handle = int;
  static Handle null() noexcept { return -1; }
  static void close(Handle file) noexcept { ::close(file); }
};

/// Owner of a file descriptor.
using FileHandle = UniqueHandle<FileTraits>;

/// The faults that an atomic write survives.
enum class Durability {
  process_crash,  ///< kill -9: no fsync, for files that can be made again from the journal
  power_loss,     ///< fsync of the file and its directory
};

/// "cannot <verb> <path>: <reason>" from errno.
/// @throws Error  always
[[noreturn]] void throw_file_error(std::string_view verb, const std::string& path, int error_code);

/// open(2) with O_CLOEXEC; new files have mode 0666 less the umask.
/// @throws Error
FileHandle open_file(const std::string& path, int flags);

/// A new file at `path`, in place of a file or a link that is there: links are not followed.
/// @throws Error  e.g. if what is there is a directory, or is not to be removed
FileHandle create_file(const std::string& path, int flags);

/// Writes all of `text`, however many calls that takes.
/// @throws Error  after which a part may have been written
void write_all(const FileHandle& file, std::string_view text, const std::string& path);

/// fsync of a file.
/// @throws Error  if it fails
void sync_file(const FileHandle& file, const std::string& path);

/// fsync of the directory that holds `path`, so that a new name in it lasts. File systems that
/// cannot do so are assumed to need no such call.
/// @throws Error  if it fails
void sync_parent_directory(const std::string& path);

/// Removes the file `path` when it is destroyed, unless rename_to() has given it its name by then.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  /// @throws Error  then the old content of `target` is still there
  void rename_to(const std::string& target);

 private:
  std::string path_;
};

/// Where `path` is written before it gets its name: "PATH.<process id>.tmp".
std::string temporary_path(const std::string& path);

/// Replaces `path` by `text`: readers, and a crash at any moment, find the old content or the new.
/// @throws Error  then the old content is still there
void write_file_atomically(const std::string& path, std::string_view text,
                           Durability durability = Durability::power_loss);

/// Writes `text` into the plain file `path`, whose blocks a full disk has already given. Not
/// atomic.
/// @returns false if that fails (a part may be written then), or if there is no such file
bool overwrite_file(const std::string& path, std::string_view text) noexcept;

/// The content of a file.
/// @throws Error  also if it is a directory or longer than `limit` bytes
std::string read_text_file(const std::string& path, Bytes limit = Bytes{1} << 40U);

/// The rest of `file` that has not been read.
/// @throws Error  also if it is longer than `limit` bytes
std::string read_all(const FileHandle& file, const std::string& path, Bytes limit);

/// Makes a directory and its parents where they are missing.
/// @throws Error  e.g. if a file is in the way
void ensure_directory(const std::string& path);

}  // namespace dstune
