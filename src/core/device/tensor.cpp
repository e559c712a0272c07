#include "core/device/tensor.hpp"

#include <utility>

#include "core/device/device.hpp"

namespace dstune {

Buffer::Buffer(Device& device, MemoryCategory category, Bytes size)
    : data_(device.allocate(category, size)),
      size_(size),
      category_(category),
      home_(device.current_stream()) {
  device_ = &device;
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      category_(other.category_),
      home_(other.home_),
      used_on_(other.used_on_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  device_ = std::exchange(other.device_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  category_ = other.category_;
  home_ = other.home_;
  used_on_ = other.used_on_;
  return *this;
}

void Buffer::reset() noexcept {
  if (device_ == nullptr) return;
  used_on_[static_cast<std::size_t>(home_)] = false;
  device_->give_back({data_, size_, category_, home_}, used_on_);
  device_ = nullptr;
  data_ = nullptr;
  size_ = 0;
}

Buffer make_buffer(Device& device, MemoryCategory category, std::int64_t numel, DType dtype) {
  return {device, category, static_cast<Bytes>(numel) * size_of(dtype)};
}

}  // namespace dstune
