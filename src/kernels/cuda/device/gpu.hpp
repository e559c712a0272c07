// One GPU as this process uses it, for as long as it lives.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <cuda_runtime_api.h>

#include "core/base/units.hpp"
#include "core/device/dtype.hpp"
#include "core/device/rates/device_peaks.hpp"
#include "core/device/stream.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/device/arena.hpp"
#include "kernels/cuda/device/events.hpp"
#include "kernels/cuda/device/piece_size.hpp"
#include "kernels/cuda/measurement/nvml.hpp"

namespace dstune::cuda {

/// Context, streams, the piece of memory that buffers lie in, scratch and staging: what is dear to
/// make and kept from experiment to experiment. Nothing in it waits for the whole GPU. Used by the
/// thread that made it.
class Gpu {
 public:
  /// Scratch that an operation has for itself.
  static constexpr Bytes kScratch = Bytes{32} << 20U;

  /// Makes the context of GPU `index`.
  /// @throws CudaError, DeviceLostError
  explicit Gpu(int index);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  int index() const noexcept { return index_; }
  const std::string& name() const noexcept { return name_; }
  int multiprocessors() const noexcept { return multiprocessors_; }
  /// nullptr where there is no NVML.
  const GpuMonitor* monitor() const noexcept { return monitor_.get(); }

  cudaStream_t stream(Stream which) const noexcept {
    return streams_[static_cast<std::size_t>(which)].get();
  }

  /// kScratch bytes that only operations on `which` use.
  void* scratch(Stream which) const noexcept {
    return scratch_[static_cast<std::size_t>(which)].get();
  }
  /// kStaging bytes of pinned host memory.
  static constexpr Bytes kStaging = Bytes{4} << 20U;
  void* staging() const noexcept { return staging_.get(); }

  EventPool& events() noexcept { return events_; }

  /// What was measured in each type; none where it could not be.
  using KnownPeaks = std::map<DType, std::optional<DevicePeaks>>;
  KnownPeaks& known_peaks() noexcept { return known_peaks_; }

  /// Memory of `size` bytes for the use of `stream`, of the one piece. Not for another stream
  /// before the user has waited, which is queued here.
  /// @param limit  of all that is in use; the piece is taken when first asked for, a little larger,
  ///               so that rounding and gaps have room, but not more than most_for_piece()
  /// @returns nullptr if there is no room
  /// @throws OutOfMemoryError if even the piece cannot be had; CudaError, DeviceLostError
  void* allocate(Bytes size, Stream stream, Bytes limit);
  void free(void* data) noexcept;
  /// Bytes in use in the piece.
  Bytes in_use() const noexcept { return arena_ ? arena_->in_use() : 0; }
  /// Gives the piece back; nothing of it may be in use.
  void release_memory() noexcept;
  /// Notes that what is free now is what the piece, NCCL and what is loaded later have; known at
  /// first is what the constructor has left.
  void note_free_memory();
  /// From now on a piece leaves NCCL what is to come. One that could not be taken whole is given
  /// back if a larger one could be now; nothing of it may be in use.
  void leave_to_nccl(const NcclMemory& nccl);

  /// Waits until `event` has passed, without stopping the thread: calls `meanwhile` again and
  /// again, which may throw.
  /// @throws CudaError, DeviceLostError
  void wait_for(cudaEvent_t event, const std::function<void()>& meanwhile) const;
  /// The same for all that the streams hold.
  void wait_for_streams(const std::function<void()>& meanwhile);
  /// To be called when all streams are known to be done.
  void forget_streams() noexcept;

 private:
  void take_memory(Bytes limit);
  Bytes piece_size(Bytes limit, Bytes free) const;
  void order(Stream stream, const StreamSet& after);

  int index_;
  std::string name_;
  int multiprocessors_ = 0;
  std::unique_ptr<GpuMonitor> monitor_;
  std::array<StreamHandle, kStreams> streams_;
  std::array<DeviceMemory, kStreams> scratch_;
  PinnedMemory staging_;
  EventPool events_;
  KnownPeaks known_peaks_;
  DeviceMemory piece_;
  Bytes piece_limit_ = 0;
  Bytes free_at_start_ = 0;
  NcclMemory nccl_;
  std::optional<Arena> arena_;
};

}  // namespace dstune::cuda
