// Host memory for direct I/O, which the system does not move out while a drive reads or writes it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/units.hpp"
#include "kernels/host/nvme/aio_context.hpp"
#include "kernels/host/nvme/file_error.hpp"

namespace dstune::host {

/// Begins at a multiple of kDirectAlignment, and has exactly `size` bytes, as DeepSpeed's
/// new_cpu_locked_tensor. Direct I/O works in memory that is not locked, too: the kernel pins its
/// pages for each request.
class AlignedBuffer {
 public:
  enum class Lock {
    if_allowed,  ///< mlock(2) may fail: RLIMIT_MEMLOCK is 8 MiB in many places
    required,
    never,
  };

  /// @param size  above 0
  /// @returns a FileError if there is no such memory, or if it cannot be locked and must be
  static OrFileError<AlignedBuffer> make(Bytes size, Lock lock);

  AlignedBuffer(AlignedBuffer&&) = default;
  AlignedBuffer& operator=(AlignedBuffer&&) = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() = default;

  std::byte* data() const { return memory_.get(); }
  Bytes size() const { return memory_.get_deleter().size; }
  bool is_locked() const { return memory_.get_deleter().is_locked; }
  /// Why it is not locked, as one line; "" if it is.
  const std::string& why_not_locked() const { return why_not_locked_; }

  /// Hands the memory over, if it is locked: whoever has it gives it to release().
  std::byte* keep() && { return memory_.release(); }
  static void release(std::byte* locked, Bytes size) noexcept;

 private:
  struct Release {
    Bytes size = 0;
    bool is_locked = false;
    void operator()(std::byte* memory) const noexcept;
  };
  using Memory = std::unique_ptr<std::byte[], Release>;

  explicit AlignedBuffer(Memory memory) : memory_(std::move(memory)) {}

  Memory memory_;
  std::string why_not_locked_;
};

}  // namespace dstune::host
