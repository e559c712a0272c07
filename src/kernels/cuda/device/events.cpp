#include "kernels/cuda/device/events.hpp"

#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

EventPool::~EventPool() {
  for (const cudaEvent_t event : all_) cudaEventDestroy(event);
}

std::shared_ptr<const void> EventPool::take() {
  if (free_.empty()) {
    cudaEvent_t event = nullptr;
    DSTUNE_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault));
    all_.push_back(event);
    free_.reserve(all_.size());  // giving back must not fail
    free_.push_back(event);
  }
  const cudaEvent_t event = free_.back();
  free_.pop_back();
  return {static_cast<const void*>(event), [this](const void* used) {
            free_.push_back(static_cast<cudaEvent_t>(const_cast<void*>(used)));
          }};
}

}  // namespace dstune::cuda
