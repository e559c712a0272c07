// The bucket in which gradients wait for their reduction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// DeepSpeed's greedy packing (docs/deepspeed-step.md, "Buckets"): a tensor that does not fit any
/// more flushes the bucket first. A tensor larger than the whole bucket is an "extra large" one; it
/// is never copied, and is alone in the bucket. With contiguous_gradients the others are copied
/// into the bucket's memory; without it they only form a list.
class GradientBucket {
 public:
  struct Entry {
    std::size_t tensor = 0;
    Tensor gradient;  ///< in the bucket, or in `own`
    Buffer own;       ///< a gradient that was not copied: an extra-large one, or one of a list
  };

  /// @param capacity  reduce_bucket_size, elements
  /// @param copies    2: one is filled while the other is reduced (overlap_comm in stages 1 and 2);
  /// 0: it is a list
  GradientBucket(Device& device, DType dtype, std::int64_t capacity, int copies);

  /// Allocates its memory, in full; category buckets. Does nothing if the memory is there already.
  void allocate();
  void free_memory();

  /// True if flush() must come before add() of a tensor of `numel` elements.
  bool must_flush_before(std::int64_t numel) const;
  /// Copies the gradient into the bucket and frees the original, unless it is extra large.
  void add(std::size_t tensor, Buffer gradient);

  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  /// The elements that are reduced together: the filled part, or the extra-large tensor. A list has
  /// none.
  Tensor contents() const;
  bool is_extra_large() const { return fill_ > capacity_; }
  /// Empties the bucket; called after a flush.
  void clear();

 private:
  Device& device_;
  DType dtype_;
  std::int64_t capacity_;
  int copies_;
  std::array<Buffer, 2> storage_;
  std::size_t current_ = 0;
  std::vector<Entry> entries_;
  std::int64_t fill_ = 0;
};

}  // namespace dstune
