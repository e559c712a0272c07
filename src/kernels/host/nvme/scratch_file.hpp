// A file that has no name, and is gone when its process ends, however it ends.
#pragma once

#include <string>
#include <utility>

#include "core/base/files/file.hpp"
#include "kernels/host/nvme/file_error.hpp"

namespace dstune::host {

/// Opened to read and write with O_DIRECT, for its owner alone.
class ScratchFile {
 public:
  /// By O_TMPFILE, and by make_unlinked() on file systems that lack it.
  /// @returns a FileError, e.g. EINVAL on a file system without O_DIRECT, EROFS, EACCES, ENOENT
  static OrFileError<ScratchFile> make(const std::string& directory);

  /// Has a name for the moment between two system calls.
  static OrFileError<ScratchFile> make_unlinked(const std::string& directory);

  int descriptor() const { return file_.get(); }
  const std::string& directory() const { return directory_; }

 private:
  ScratchFile(FileHandle file, std::string directory)
      : file_(std::move(file)), directory_(std::move(directory)) {}

  FileHandle file_;
  std::string directory_;
};

}  // namespace dstune::host
