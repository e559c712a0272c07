// CUDA's events, made once and used again.
#pragma once

#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/cuda/base/handles.hpp"

namespace dstune::cuda {

/// Used by one thread; must outlive what take() gave.
class EventPool {
 public:
  EventPool() = default;
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  /// An event with a time; it comes back when the last copy of the pointer is gone.
  /// @throws CudaError, DeviceLostError
  std::shared_ptr<const void> take();
  /// An event without a time, which is only waited for, and cheaper to record.
  std::shared_ptr<const void> take_untimed();

  static cudaEvent_t of(const std::shared_ptr<const void>& handle) {
    return static_cast<cudaEvent_t>(const_cast<void*>(handle.get()));
  }

 private:
  struct Shelf {
    std::vector<EventHandle> all;
    std::vector<cudaEvent_t> free;
  };

  static std::shared_ptr<const void> take_from(Shelf& shelf, EventHandle (*make)());

  Shelf timed_;
  Shelf untimed_;
};

}  // namespace dstune::cuda
