#include "kernels/host/nvme/aligned_buffer.hpp"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>

#include "core/base/text.hpp"

namespace dstune::host {
namespace {

std::string limit_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "";
  if (limit.rlim_cur == RLIM_INFINITY) return "RLIMIT_MEMLOCK (ulimit -l) is unlimited";
  return concat("RLIMIT_MEMLOCK (ulimit -l) is ", format_bytes(limit.rlim_cur));
}

}  // namespace

void AlignedBuffer::Release::operator()(std::byte* memory) const noexcept {
  if (is_locked) ::munlock(memory, size);
  std::free(memory);
}

void AlignedBuffer::release(std::byte* locked, Bytes size) noexcept {
  Release{.size = size, .is_locked = true}(locked);
}

OrFileError<AlignedBuffer> AlignedBuffer::make(Bytes size, Lock lock) {
  void* found = nullptr;
  const int fault = ::posix_memalign(&found, kDirectAlignment, size);
  if (fault != 0) {
    return FileError{.operation = concat("posix_memalign of ", format_bytes(size)),
                     .file = {},
                     .code = fault,
                     .remark = {}};
  }
  AlignedBuffer buffer(Memory(static_cast<std::byte*>(found), Release{.size = size}));
  if (lock == Lock::never) return buffer;
  if (::mlock(found, size) == 0) {
    buffer.memory_.get_deleter().is_locked = true;
    return buffer;
  }
  FileError error{.operation = concat("mlock of ", format_bytes(size)),
                  .file = {},
                  .code = errno,
                  .remark = limit_text()};
  if (lock == Lock::required) return error;
  buffer.why_not_locked_ = to_text(error);
  return buffer;
}

}  // namespace dstune::host
