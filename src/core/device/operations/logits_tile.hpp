// Cross-entropy of logits that are made a tile at a time, as TRL's fused head has it.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Rows of FoldLogits::statistics: the largest logit, the sum of exponentials relative to it, the
/// logit of the label. Before the first tile: -infinity, 0, 0.
inline constexpr std::int64_t kLargest = 0;
inline constexpr std::int64_t kExpSum = 1;
inline constexpr std::int64_t kLabelLogit = 2;
inline constexpr std::int64_t kRowStatistics = 3;  ///< how many

/// A tile's columns become part of the statistics of its rows. With a cap c, here and in the
/// gradient, c tanh(logit / c) stands for a logit.
struct FoldLogits {
  Matrix tile;             ///< (n, w), any type
  Tensor labels;           ///< int64 (n), each a column of the whole
  std::int64_t first = 0;  ///< the whole's column that is the tile's column 0
  Matrix statistics;       ///< fp32 (kRowStatistics, n), a column per row of the tile
  double softcap = 0;      ///< 0: none
};

/// log_sums[i] = log of the sum of a row's exponentials; losses[i] = that less the label's logit.
struct LogSums {
  Matrix statistics;  ///< fp32 (kRowStatistics, n)
  Tensor log_sums;    ///< fp32 (n)
  Tensor losses;      ///< fp32 (n)
};

/// The tile becomes the gradient by it of factor * the sum of losses.
struct LogitsGradient {
  Matrix tile;  ///< as in FoldLogits; overwritten
  Tensor labels;
  std::int64_t first = 0;
  Tensor log_sums;  ///< fp32 (n)
  double factor = 1;
  double softcap = 0;
};

inline Work work_of(const FoldLogits& op) {
  return {"fold_logits", 5 * count(op.tile), {op.tile, op.labels, op.statistics}, {op.statistics}};
}
inline Work work_of(const LogSums& op) {
  return {"log_sums", 3 * count(op.losses), {op.statistics}, {op.log_sums, op.losses}};
}
inline Work work_of(const LogitsGradient& op) {
  return {"logits_gradient", 4 * count(op.tile), {op.tile, op.labels, op.log_sums}, {op.tile}};
}

}  // namespace dstune
