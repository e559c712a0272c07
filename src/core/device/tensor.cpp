#include "core/device/tensor.hpp"

#include <utility>

#include "core/device/device.hpp"

namespace dstune {

Buffer::Buffer(Device& device, MemoryCategory category, Bytes size, Tier tier)
    : memory_(tier == Tier::device ? device.allocate(category, size)
                                   : device.allocate_on_host(tier, category, size)) {
  device_ = &device;
}

void Buffer::give_back() noexcept {
  used_on_[static_cast<std::size_t>(memory_.home)] = false;
  device_->give_back(std::exchange(memory_, {}), used_on_);
  device_ = nullptr;
}

Buffer make_buffer(Device& device, MemoryCategory category, std::int64_t numel, DType dtype,
                   Tier tier) {
  return {device, category, static_cast<Bytes>(numel) * size_of(dtype), tier};
}

}  // namespace dstune
