// The host's memory through which stage 3 swaps to a drive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/device.hpp"

namespace dstune {

struct PlaceInBuffer {
  std::size_t buffer = 0;  ///< from 0 on
  std::int64_t begin = 0;  ///< the first element
};

/// Puts tensors into buffers of the same size, one after the other, and the first that does not fit
/// any more into the next buffer: as many tensors as there is room for (DeepSpeed's
/// SwapBufferPool). Numbers are of elements.
std::vector<PlaceInBuffer> pack_into_buffers(std::span<const std::int64_t> numels,
                                             std::size_t buffers, std::int64_t size);

/// offload_optimizer.buffer_count buffers of the same size, which are locked and exactly as large
/// as they are asked for: DeepSpeed's SwapBufferManager. Elements are fp32.
class SwapBuffers {
 public:
  using Number = std::size_t;  ///< of a buffer

  /// Allocates them, and fills them with zeros.
  /// @param numel  of each
  SwapBuffers(Device& device, std::int64_t numel, int count);

  /// Those of the buffers that are free which were given back last.
  /// @throws std::logic_error  if so many are not free: a configuration of which DeepSpeed would
  /// die
  std::vector<Number> take(std::size_t count);
  std::vector<Number> take_all() { return take(free_.size()); }
  void give_back(std::span<const Number> numbers);

  std::int64_t numel() const { return numel_; }
  /// The first `count` elements of a buffer.
  Tensor tensor(Number number, std::int64_t count) const {
    return buffers_[number].tensor(DType::fp32).slice(0, count);
  }

 private:
  std::int64_t numel_;
  std::vector<Buffer> buffers_;
  std::vector<Number> free_;
};

}  // namespace dstune
