#include "core/device/tensor.hpp"

#include <utility>

#include "core/device/device.hpp"

namespace dstune {

Buffer::Buffer(Device& device, MemoryCategory category, Bytes size)
    : memory_(device.allocate(category, size)) {
  device_ = &device;
}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      used_on_(other.used_on_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  device_ = std::exchange(other.device_, nullptr);
  memory_ = std::exchange(other.memory_, {});
  used_on_ = other.used_on_;
  return *this;
}

void Buffer::reset() noexcept {
  if (device_ == nullptr) return;
  used_on_[static_cast<std::size_t>(memory_.home)] = false;
  device_->give_back(std::exchange(memory_, {}), used_on_);
  device_ = nullptr;
}

Buffer make_buffer(Device& device, MemoryCategory category, std::int64_t numel, DType dtype) {
  return {device, category, static_cast<Bytes>(numel) * size_of(dtype)};
}

}  // namespace dstune
