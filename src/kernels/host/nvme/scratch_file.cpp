#include "kernels/host/nvme/scratch_file.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dstune::host {
namespace {

FileError open_error(const std::string& directory, int code) {
  return {.operation = "open with O_DIRECT",
          .file = directory,
          .code = code,
          .remark = code == EINVAL ? "this file system has no O_DIRECT" : ""};
}

}  // namespace

OrFileError<ScratchFile> ScratchFile::make(const std::string& directory) {
  constexpr int kFlags = O_TMPFILE | O_RDWR | O_DIRECT | O_EXCL | O_CLOEXEC;
  FileHandle file(::open(directory.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (file) return ScratchFile(std::move(file), directory);
  const int code = errno;
  // Kernels and file systems without O_TMPFILE say that it is a directory, or not supported.
  if (code == EISDIR || code == EOPNOTSUPP) return make_unlinked(directory);
  return open_error(directory, code);
}

OrFileError<ScratchFile> ScratchFile::make_unlinked(const std::string& directory) {
  std::string path = directory + "/.dstune-scratch-XXXXXX";
  FileHandle file(::mkostemp(path.data(), O_DIRECT | O_CLOEXEC));
  const int code = errno;
  // Where O_DIRECT is refused, the kernel may have made the file before it said so.
  if (file || code == EINVAL) ::unlink(path.c_str());
  if (!file) return open_error(directory, code);
  return ScratchFile(std::move(file), directory);
}

}  // namespace dstune::host
