// One thread's queue of asynchronous requests.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/drive/aio_settings.hpp"
#include "core/device/rates/aio_sweep.hpp"
#include "kernels/host/nvme/aio_calls.hpp"
#include "kernels/host/nvme/file_error.hpp"

namespace dstune::host {

/// With O_DIRECT, buffers, offsets and sizes must be multiples of the drive's logical blocks, which
/// have 512 or 4096 bytes.
inline constexpr Bytes kDirectAlignment = 4096;

/// A piece of a file that is read or written. File and buffer must stay until it has ended.
struct FileTransfer {
  AioDirection direction = AioDirection::read;
  int file = -1;                ///< a descriptor, opened with O_DIRECT
  std::string path = {};        ///< for messages
  std::byte* buffer = nullptr;  ///< `size` bytes, a multiple of kDirectAlignment, as are the others
  Bytes size = 0;
  Bytes offset = 0;  ///< in the file
};

/// Used by one thread at a time.
class AioContext {
 public:
  /// @returns none if the kernel gives it a queue of this depth, or else why not: EAGAIN if all
  ///          processes together would have more than fs.aio-max-nr
  static std::optional<FileError> check_setup(long result, int queue_depth);

  /// @param calls  must outlive it
  static OrFileError<AioContext> make(const AioSettings& settings, AioCalls& calls);

  AioContext(AioContext&& other) noexcept;
  AioContext& operator=(AioContext&&) = delete;
  AioContext(const AioContext&) = delete;
  AioContext& operator=(const AioContext&) = delete;
  ~AioContext();

  /// Cuts `transfer` into requests of block_size and returns when all have ended. After a fault no
  /// further requests begin. Every event's result is looked at.
  /// @returns the fault, of several one with an errno before a short one, then that of the least
  ///          offset
  std::optional<FileError> transfer(const FileTransfer& transfer);

 private:
  struct Flight;

  AioContext(const AioSettings& settings, AioCalls& calls, aio_context_t context);
  void prepare(Flight& flight);
  void submit(Flight& flight);
  void collect(Flight& flight);
  void close() noexcept;

  AioSettings settings_;
  AioCalls* calls_;
  aio_context_t context_ = 0;   ///< 0: closed
  std::vector<iocb> requests_;  ///< one for each place in the queue
  std::vector<io_event> events_;
  std::vector<std::size_t> free_;  ///< places
  std::vector<iocb*> waiting_;     ///< prepared, not submitted
};

}  // namespace dstune::host
