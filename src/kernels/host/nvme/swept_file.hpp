// The file of a sweep: written and read in a circle, and what was read is held to what was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/rates/aio_sweep.hpp"
#include "kernels/host/nvme/aio_engine.hpp"
#include "kernels/host/nvme/aligned_buffer.hpp"
#include "kernels/host/nvme/file_error.hpp"
#include "kernels/host/nvme/scratch_file.hpp"

namespace dstune::host {

/// Each operation has the next piece of the file, of equal size: prepare(), run(), finish(), of
/// which a stopwatch takes the second alone.
class SweptFile {
 public:
  /// @param seed  of its random bytes
  SweptFile(ScratchFile&& file, std::uint64_t seed) : file_(std::move(file)), seed_(seed) {}

  /// Begins anew with operations of `operation` bytes: two buffers of that size, and a file of
  /// `pieces` of them, of which none is taken to be written.
  std::optional<FileError> make_buffers(Bytes operation, int pieces);

  Bytes operation() const { return written_bytes_ ? written_bytes_->size() : 0; }
  Bytes written() const { return written_; }
  Bytes read() const { return read_; }
  /// Why the buffers are not locked in memory; "" if they are.
  std::string why_not_locked() const;

  /// The next operation has the first piece.
  void rewind() { next_ = 0; }
  void prepare(AioDirection direction);
  std::optional<FileError> run(AioDirection direction, AioEngine& engine);
  /// @returns what differs in a piece that was read
  std::optional<FileError> finish(AioDirection direction);

 private:
  Bytes offset() const { return static_cast<Bytes>(next_) * operation(); }

  ScratchFile file_;
  std::uint64_t seed_;
  std::optional<AlignedBuffer> written_bytes_;
  std::optional<AlignedBuffer> read_bytes_;
  std::vector<std::uint64_t> generations_;  ///< how often each piece was written
  std::uint64_t generation_ = 0;
  std::size_t next_ = 0;
  Bytes written_ = 0;
  Bytes read_ = 0;
};

}  // namespace dstune::host
