#include "kernels/host/nvme/file_error.hpp"

#include <cerrno>
#include <system_error>

#include "core/base/printable.hpp"
#include "core/base/text.hpp"

namespace dstune::host {

// glibc has strerrorname_np() only since 2.32, and the program runs with older ones.
std::string error_name(int code) {
  struct Name {
    int code;
    const char* name;
  };
  constexpr Name kNames[] = {
      {EACCES, "EACCES"}, {EAGAIN, "EAGAIN"},       {EBADF, "EBADF"},   {EDQUOT, "EDQUOT"},
      {EFAULT, "EFAULT"}, {EFBIG, "EFBIG"},         {EINVAL, "EINVAL"}, {EIO, "EIO"},
      {EMFILE, "EMFILE"}, {ENODEV, "ENODEV"},       {ENOENT, "ENOENT"}, {ENOMEM, "ENOMEM"},
      {ENOSPC, "ENOSPC"}, {ENOSYS, "ENOSYS"},       {ENXIO, "ENXIO"},   {EOPNOTSUPP, "EOPNOTSUPP"},
      {EPERM, "EPERM"},   {EREMOTEIO, "EREMOTEIO"}, {EROFS, "EROFS"},   {ETIMEDOUT, "ETIMEDOUT"},
  };
  for (const Name& each : kNames) {
    if (each.code == code) return each.name;
  }
  return concat("errno ", code);
}

std::string to_text(const FileError& error) {
  std::string text = error.operation;
  if (error.size > 0) {
    text += concat(" of ", format_bytes(error.size), " at offset ", error.offset);
  }
  if (!error.file.empty()) text += concat(" in ", printable(error.file));
  if (error.code != 0) {
    text += concat(": ", std::generic_category().message(error.code), " (", error_name(error.code),
                   ")");
  } else if (error.moved < error.size) {
    text += concat(": only ", error.moved, " bytes were moved");
  }
  if (!error.remark.empty()) text += concat("; ", error.remark);
  return text;
}

}  // namespace dstune::host
