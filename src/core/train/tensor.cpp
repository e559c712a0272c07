#include "core/train/tensor.hpp"

#include <utility>

#include "core/train/device.hpp"

namespace dstune {

Buffer::Buffer(Device& device, MemoryCategory category, Bytes size) : category_(category) {
  device.budget_.reserve(category, size);
  try {
    data_ = device.do_allocate(category, size);
  } catch (...) {
    device.budget_.release(category, size);
    throw;
  }
  device_ = &device;
  size_ = size;
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      category_(other.category_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  device_ = std::exchange(other.device_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  category_ = other.category_;
  return *this;
}

void Buffer::reset() noexcept {
  if (device_ == nullptr) return;
  device_->do_free(data_, size_);
  device_->budget_.release(category_, size_);
  device_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

Buffer make_buffer(Device& device, MemoryCategory category, std::int64_t numel, DType dtype) {
  return {device, category, static_cast<Bytes>(numel) * size_of(dtype)};
}

}  // namespace dstune
