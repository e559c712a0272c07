#include "kernels/cuda/device/events.hpp"

namespace dstune::cuda {

std::shared_ptr<const void> EventPool::take() {
  if (free_.empty()) {
    all_.push_back(make_event());
    free_.reserve(all_.size());  // giving back must not fail
    free_.push_back(all_.back().get());
  }
  const cudaEvent_t event = free_.back();
  free_.pop_back();
  return {static_cast<const void*>(event), [this](const void* used) {
            free_.push_back(static_cast<cudaEvent_t>(const_cast<void*>(used)));
          }};
}

}  // namespace dstune::cuda
