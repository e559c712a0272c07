// Views of device memory, and the buffers that own it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/device/dtype.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/device/stream.hpp"

namespace dstune {

class Device;

/// `numel` contiguous elements on a device, which it does not own.
struct Tensor {
  void* data = nullptr;
  std::int64_t numel = 0;
  DType dtype = DType::fp32;

  Bytes size() const { return static_cast<Bytes>(numel) * size_of(dtype); }

  /// Elements [offset, offset + count).
  Tensor slice(std::int64_t offset, std::int64_t count) const {
    if (data == nullptr) return {nullptr, count, dtype};
    return {static_cast<std::byte*>(data) + offset * static_cast<std::int64_t>(size_of(dtype)),
            count, dtype};
  }
};

/// A row-major matrix; element (i, j) is at data[i * stride + j]. It does not own its elements.
struct Matrix {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType dtype = DType::fp32;
  std::int64_t stride = 0;  ///< elements between rows, >= cols

  std::int64_t numel() const { return rows * cols; }
  Bytes size() const { return static_cast<Bytes>(numel()) * size_of(dtype); }
  /// The bytes from the first element to behind the last.
  Bytes extent() const { return static_cast<Bytes>((rows - 1) * stride + cols) * size_of(dtype); }
};

/// `tensor`, whose numel is rows * cols, as a dense matrix.
inline Matrix as_matrix(Tensor tensor, std::int64_t rows, std::int64_t cols) {
  return {tensor.data, rows, cols, tensor.dtype, cols};
}

/// One allocation, and what its budget knows about it.
struct Allocation {
  void* data = nullptr;
  Bytes size = 0;
  MemoryCategory category = MemoryCategory::temporaries;
  Stream home = Stream::compute;  ///< the stream that was current when it was made
  MemoryBudget::Block block = CachingModel::kNoBlock;
  Tier tier = Tier::device;
};

/// Owns one allocation and gives it back to its Device, which must outlive it. An empty Buffer
/// (default constructed or moved from) owns nothing. Contents are undefined until written.
class Buffer {
 public:
  Buffer() = default;
  /// @throws OutOfMemoryError  if `size` does not fit the device's budget, or its host's
  Buffer(Device& device, MemoryCategory category, Bytes size, Tier tier = Tier::device);
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        memory_(std::exchange(other.memory_, {})),
        used_on_(other.used_on_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this == &other) return *this;
    reset();
    device_ = std::exchange(other.device_, nullptr);
    memory_ = std::exchange(other.memory_, {});
    used_on_ = other.used_on_;
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Gives the memory back in the order of the stream that was current when it was made: what that
  /// stream holds now may still use it. The work of other streams must come before that, unless
  /// used_on() names them.
  void reset() noexcept {
    if (device_ != nullptr) give_back();
  }

  /// Says that `stream` uses the memory too, as torch's record_stream(). When the memory is given
  /// back, its bytes count as active, and nobody else gets them, until what `stream` holds by then
  /// is done.
  void used_on(Stream stream) noexcept { used_on_[static_cast<std::size_t>(stream)] = true; }

  void* data() const noexcept { return memory_.data; }
  Bytes size() const noexcept { return memory_.size; }
  explicit operator bool() const noexcept { return device_ != nullptr; }

  /// The whole buffer as elements of `dtype`.
  Tensor tensor(DType dtype) const {
    return {memory_.data, static_cast<std::int64_t>(memory_.size / size_of(dtype)), dtype};
  }

 private:
  void give_back() noexcept;

  Device* device_ = nullptr;
  Allocation memory_;
  std::array<bool, kStreams> used_on_{};  // other streams
};

/// A Buffer of `numel` elements of `dtype`.
Buffer make_buffer(Device& device, MemoryCategory category, std::int64_t numel, DType dtype,
                   Tier tier = Tier::device);

}  // namespace dstune
