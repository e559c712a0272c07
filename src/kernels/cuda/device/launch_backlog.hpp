// How much work the streams of a GPU hold that the host has queued.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include <cuda_runtime_api.h>

#include "core/device/stream.hpp"

namespace dstune::cuda {

class Gpu;

/// CUDA queues about 1000 launches of a stream. One more stops the host inside the call, where it
/// answers nobody and sees no deadline. So a mark follows every kStride launches, and the host
/// waits for an earlier one, as it waits for everything, before the queue is full.
class LaunchBacklog {
 public:
  static constexpr int kStride = 256;
  static constexpr std::size_t kMarks = 2;
  /// Outstanding at most, where all are counted.
  static constexpr int kMost = kStride * (static_cast<int>(kMarks) + 1);

  /// @param gpu  must outlive it
  explicit LaunchBacklog(Gpu& gpu) : gpu_(gpu) {}

  /// So many launches (kernels, copies, records and waits of events) follow on `stream`.
  void count(Stream stream, int launches) noexcept {
    streams_[static_cast<std::size_t>(stream)].launches += launches;
  }
  /// Marks what is counted, and waits if there is too much.
  /// @param meanwhile  as in Gpu::wait_for()
  /// @throws CudaError, DeviceLostError
  void make_room(Stream stream, const std::function<void()>& meanwhile);

 private:
  struct Queue {
    int launches = 0;  ///< since the last mark
    std::deque<std::shared_ptr<const void>> marks;
  };

  Gpu& gpu_;
  std::array<Queue, kStreams> streams_;
};

}  // namespace dstune::cuda
