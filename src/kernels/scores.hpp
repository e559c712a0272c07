// Masks and relative positions of scores, for every backend that computes.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/device/dtype.hpp"
#include "core/device/operations/relative_positions.hpp"

namespace dstune {

/// torch.finfo(dtype).min
constexpr float lowest_of(DType dtype) {
  if (dtype == DType::fp16) return -65504.0F;
  return dtype == DType::bf16 ? -3.38953139e38F : std::numeric_limits<float>::lowest();
}

// Buckets are constexpr because nvcc compiles constexpr functions for the GPU, too. torch computes
// them in fp32 and in this order: at powers the rounding decides. Math is what a backend computes
// with: log(x), ceil(x).

/// The buckets of PositionBuckets.
template <class Math>
struct PositionBucket {
  explicit PositionBucket(const PositionBuckets& op)
      : bidirectional(op.bidirectional),
        buckets(op.bidirectional ? op.buckets / 2 : op.buckets),
        exact(buckets / 2),
        range(static_cast<float>(
            std::log(static_cast<double>(op.max_distance) / static_cast<double>(exact)))) {}

  /// @param ahead  from the query to the key
  constexpr std::int64_t of(std::int64_t ahead) const {
    const bool in_second_half = bidirectional && ahead > 0;
    const std::int64_t first = in_second_half ? buckets : 0;
    const std::int64_t behind = ahead < 0 ? -ahead : 0;
    const std::int64_t distance = in_second_half ? ahead : behind;
    if (distance < exact) return first + distance;
    const float part = Math::log(static_cast<float>(distance) / static_cast<float>(exact)) / range *
                       static_cast<float>(buckets - exact);
    const std::int64_t shared = exact + static_cast<std::int64_t>(part);
    return first + (shared < buckets ? shared : buckets - 1);
  }

  bool bidirectional;
  std::int64_t buckets;  ///< of one direction
  std::int64_t exact;    ///< of them, those of a single distance
  float range;
};

/// The buckets of FillDistances.
template <class Math>
struct DistanceBucket {
  explicit DistanceBucket(const FillDistances& op) : middle(op.buckets / 2) {
    if (middle == 0) return;
    const double most = static_cast<double>(op.most - 1) / static_cast<double>(middle);
    log_of_most = std::log(static_cast<float>(most));
  }

  /// @param distance  from the key to the query
  constexpr std::int64_t of(std::int64_t distance) const {
    const std::int64_t size = distance < 0 ? -distance : distance;
    if (middle == 0 || size <= middle) return distance;
    const float log_of_size = Math::log(static_cast<float>(size) / static_cast<float>(middle));
    const float beyond = Math::ceil(log_of_size / log_of_most * static_cast<float>(middle - 1));
    const std::int64_t bucket = static_cast<std::int64_t>(beyond) + middle;
    return distance < 0 ? -bucket : bucket;
  }

  std::int64_t middle;  ///< 0: there are no buckets
  float log_of_most = 1;
};

}  // namespace dstune
