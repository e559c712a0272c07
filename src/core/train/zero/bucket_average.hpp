// How stages 1 and 2 average a bucket over the ranks (zero-step.md 3.2, items 4 and 8).
#pragma once

#include <cstdint>
#include <vector>

#include "core/train/collectives.hpp"
#include "core/train/device.hpp"

namespace dstune {

/// A stretch of a bucket that one rank owns.
struct BucketSlice {
  int owner = 0;
  std::int64_t numel = 0;
};

/// Neighbours of one owner become one.
void append_slice(std::vector<BucketSlice>& slices, BucketSlice next);

/// Afterwards the slices that this rank owns are averages; the others are undefined.
struct BucketAverage {
  Device& device;
  Collectives& collectives;
  Stream stream;
  std::int64_t capacity;  ///< reduce_bucket_size

  /// reduce_scatter = true: divide, then one all-reduce per run of slices whose sum exceeds
  /// `capacity` (in practice: of the whole bucket, or of each part of an extra-large tensor).
  void by_slices(Tensor bucket, const std::vector<BucketSlice>& slices) const;
  /// reduce_scatter = false: one all-reduce in place, then the division.
  void as_whole(Tensor bucket) const;

 private:
  void reduce_run(Tensor part, const BucketSlice* begin, const BucketSlice* end) const;
  void all_reduce(Tensor inout) const;
};

}  // namespace dstune
