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
#include "kernels/cuda/device/virtual_memory.hpp"
#include "kernels/cuda/measurement/nvml.hpp"

namespace dstune::cuda {

/// Context, streams, the memory that buffers lie in, scratch and staging: what is dear to make and
/// kept from experiment to experiment. Nothing in it waits for the whole GPU. Used by the thread
/// that made it.
///
/// Buffers lie in segments as the budget makes them, where it counts those and the GPU has virtual
/// memory; else in one piece.
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

  /// Where a budget finds its segments: null, and why_no_segments() says why, if there are none.
  /// They leave NCCL what is to come, and room for what is loaded later, as a piece does.
  SegmentSource* segments() noexcept { return segments_ ? &*segments_ : nullptr; }
  /// One line; "" if there are segments.
  const std::string& why_no_segments() const noexcept { return why_no_segments_; }

  /// Memory of `size` bytes for the use of `stream`, of the one piece. Not for another stream
  /// before the user has waited, which is queued here.
  /// @param limit  of all that is in use; the piece is taken when first asked for, a little larger,
  ///               so that rounding and gaps have room, but not more than most_for_buffers()
  /// @returns nullptr if there is no room
  /// @throws OutOfMemoryError if even the piece cannot be had; CudaError, DeviceLostError
  void* allocate(Bytes size, Stream stream, Bytes limit);
  /// The same for the few bytes that no budget counts, where buffers lie in segments(): a number
  /// for the host, a buffer without elements. kBesideSegments bytes in all.
  void* allocate_beside_segments(Bytes size, Stream stream);
  static constexpr Bytes kBesideSegments = Bytes{2} << 20U;
  /// Of either.
  void free(void* data) noexcept;
  /// Bytes in use in the piece and beside segments, and all segments, in use or cached.
  Bytes in_use() const noexcept;
  /// Gives the piece back; nothing of it may be in use.
  void release_memory() noexcept;
  /// Notes that what is free now is what buffers, NCCL and what is loaded later have; known at
  /// first is what the constructor has left.
  void note_free_memory();
  /// From now on buffers leave NCCL what is to come. A piece that could not be taken whole is given
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
  /// Memory of cudaMalloc, and the places in it.
  struct Piece {
    explicit Piece(Bytes size) : memory(make_device_memory(size)), arena(size) {}

    std::byte* begin() const noexcept { return static_cast<std::byte*>(memory.get()); }
    bool holds(const void* data) const noexcept;

    DeviceMemory memory;
    Arena arena;
  };

  void* take(Piece& piece, Bytes size, Stream stream);
  void take_piece(Bytes limit);
  Bytes most_for(Bytes free) const;
  Bytes piece_size(Bytes limit, Bytes free) const;
  void order(Stream stream, const StreamSet& after);
  void open_segments();

  int index_;
  std::string name_;
  int multiprocessors_ = 0;
  std::unique_ptr<GpuMonitor> monitor_;
  std::array<StreamHandle, kStreams> streams_;
  std::array<DeviceMemory, kStreams> scratch_;
  PinnedMemory staging_;
  EventPool events_;
  KnownPeaks known_peaks_;
  Bytes free_at_start_ = 0;
  NcclMemory nccl_;
  std::string why_no_segments_;
  std::optional<VirtualMemory> segments_;
  std::optional<Piece> beside_segments_;
  std::optional<Piece> piece_;
  Bytes piece_limit_ = 0;
};

}  // namespace dstune::cuda
