#include "core/train/zero/offload/nvme/swap_buffers.hpp"

#include <stdexcept>

#include "core/device/operations/elementwise.hpp"

namespace dstune {

std::vector<PlaceInBuffer> pack_into_buffers(std::span<const std::int64_t> numels,
                                             std::size_t buffers, std::int64_t size) {
  std::vector<PlaceInBuffer> places;
  PlaceInBuffer next;
  for (const std::int64_t numel : numels) {
    if (next.begin + numel > size) next = {next.buffer + 1, 0};
    if (next.buffer >= buffers || numel > size) break;
    places.push_back(next);
    next.begin += numel;
  }
  return places;
}

SwapBuffers::SwapBuffers(Device& device, std::int64_t numel, int count) : numel_(numel) {
  for (int i = 0; i < count; ++i) {
    buffers_.push_back(
        make_buffer(device, MemoryCategory::optimizer, numel, DType::fp32, Tier::locked));
    device.run_on_host(FillZero{tensor(buffers_.size() - 1, numel)});
    free_.push_back(buffers_.size() - 1);
  }
}

std::vector<SwapBuffers::Number> SwapBuffers::take(std::size_t count) {
  if (count > free_.size()) throw std::logic_error("too few swap buffers");
  const auto first = free_.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<Number> taken(first, free_.end());
  free_.erase(first, free_.end());
  return taken;
}

void SwapBuffers::give_back(std::span<const Number> numbers) {
  free_.insert(free_.end(), numbers.begin(), numbers.end());
}

}  // namespace dstune
