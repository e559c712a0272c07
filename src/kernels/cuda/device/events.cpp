#include "kernels/cuda/device/events.hpp"

namespace dstune::cuda {

std::shared_ptr<const void> EventPool::take() { return take_from(timed_, make_event); }

std::shared_ptr<const void> EventPool::take_untimed() {
  return take_from(untimed_, make_untimed_event);
}

std::shared_ptr<const void> EventPool::take_from(Shelf& shelf, EventHandle (*make)()) {
  if (shelf.free.empty()) {
    shelf.all.push_back(make());
    shelf.free.reserve(shelf.all.size());  // giving back must not fail
    shelf.free.push_back(shelf.all.back().get());
  }
  const cudaEvent_t event = shelf.free.back();
  shelf.free.pop_back();
  return {static_cast<const void*>(event), [&shelf](const void* used) {
            shelf.free.push_back(static_cast<cudaEvent_t>(const_cast<void*>(used)));
          }};
}

}  // namespace dstune::cuda
