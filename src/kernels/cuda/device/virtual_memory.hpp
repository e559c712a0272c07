// Memory of a GPU in segments of which each has pages and addresses of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/units.hpp"
#include "core/device/memory/segment_source.hpp"
#include "kernels/cuda/libraries/driver.hpp"

namespace dstune::cuda {

/// Addresses that are reserved; gives them back.
class ReservedRange {
 public:
  /// @throws CudaError, DeviceLostError, OutOfMemoryError
  ReservedRange(const Driver& driver, Bytes size);
  ~ReservedRange();
  ReservedRange(const ReservedRange&) = delete;
  ReservedRange& operator=(const ReservedRange&) = delete;

  CUdeviceptr begin() const noexcept { return begin_; }
  Bytes size() const noexcept { return size_; }

 private:
  const Driver& driver_;
  Bytes size_;
  CUdeviceptr begin_ = 0;
};

/// Pages of a GPU at all addresses of a range; unmaps them, which frees the memory.
class MappedPages {
 public:
  /// @param range  must outlive this
  /// @throws CudaError, DeviceLostError; OutOfMemoryError if the GPU has no such memory left
  MappedPages(const Driver& driver, const ReservedRange& range, int device);
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

 private:
  const Driver& driver_;
  const ReservedRange& range_;
};

/// Segments by CUDA's virtual memory management. Unlike cudaMalloc and cudaFree, to make one stops
/// nothing, and nothing is rounded: what all segments take of the GPU is the sum of their sizes.
/// Each has a range of addresses of its own, of which there are far more than bytes of memory, so
/// that what was given back leaves no gap that is too small for what comes.
class VirtualMemory final : public SegmentSource {
 public:
  /// The most that all segments together may have at this moment, of which they have `held`.
  using Most = std::function<Bytes(Bytes held)>;

  /// Why segments cannot be made on a GPU, "" if they can: it is asked, then a small one is made.
  /// @param device  its ordinal, of the current context
  /// @throws CudaError  if a question fails; DeviceLostError, OutOfMemoryError
  static std::string why_unavailable(int device, const Library& library = driver_library());

  /// @param device  as above, of which why_unavailable() says nothing
  VirtualMemory(int device, Most most);

  Segment make(Bytes size) override;
  /// The streams must be done with it: CUDA promises no more than that it mostly waits.
  void give_back(void* data, Bytes size) noexcept override;

  /// The sum of all segments.
  Bytes held() const noexcept { return held_; }

 private:
  struct Parts {
    Parts(const Driver& driver, Bytes size, int device)
        : range(driver, size), pages(driver, range, device) {}

    ReservedRange range;
    MappedPages pages;
  };

  const Driver& driver_;
  int device_;
  Most most_;
  Bytes held_ = 0;
  std::map<void*, std::unique_ptr<const Parts>> segments_;
};

}  // namespace dstune::cuda
