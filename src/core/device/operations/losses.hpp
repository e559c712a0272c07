// The losses of language models, and the metrics that a trainer logs beside them.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// labels[i] = tokens[i + 1] within a sequence, and -1 at its end.
struct NextTokens {
  Tensor tokens;              ///< int64, whole sequences
  std::int64_t sequence = 1;  ///< the length of one
  Tensor labels;              ///< int64, as many as tokens
};

/// sum += factor * the mean over the counted rows of -log_probs[i, labels[i]]; nothing is added
/// where no row counts.
struct NllLoss {
  Matrix log_probs;  ///< (M, V)
  Tensor labels;     ///< int64 (M)
  Tensor sum;        ///< fp32, one element
  double factor = 1;
};

/// out = loss_scale * d(nll_loss) / d(log_probs): zero but for one element per counted row.
struct NllLossBackward {
  Tensor labels;  ///< int64 (M)
  double loss_scale = 1;
  Matrix out;  ///< (M, V)
};

inline Work work_of(const NextTokens& op) { return {"next_tokens", 0, {op.tokens}, {op.labels}}; }
// One element per row is read.
inline Work work_of(const NllLoss& op) {
  const Bytes chosen = static_cast<Bytes>(op.log_probs.rows) * size_of(op.log_probs.dtype);
  return {"nll_loss",
          static_cast<double>(op.log_probs.rows),
          {Operand(op.log_probs).of(chosen), op.labels, number(op.sum)},
          {number(op.sum)}};
}
inline Work work_of(const NllLossBackward& op) {
  return {"nll_loss_backward", 0, {op.labels}, {op.out}};
}

/// Liger's kernel, which makes loss and gradient in one pass: losses[i] = -log_softmax(logits(i,
/// :))[labels[i]], and the gradient by the logits is written over them. Both are zero in rows whose
/// label is below 0. With a cap c, c tanh(logit / c) is taken for each logit.
struct CrossEntropy {
  Matrix logits;       ///< (M, V), any type; overwritten
  Tensor labels;       ///< int64 (M)
  Tensor losses;       ///< fp32 (M)
  double softcap = 0;  ///< 0: none
};

inline Work work_of(const CrossEntropy& op) {
  return {"cross_entropy",
          8 * count(op.logits),
          {op.logits, op.logits, op.labels},
          {op.logits, op.losses}};
}

/// The rows of FoldLogits::statistics: the largest logit, the sum of exponentials relative to it,
/// and the logit of the label. Before the first tile they are -infinity, 0 and 0.
inline constexpr std::int64_t kLargest = 0;
inline constexpr std::int64_t kExpSum = 1;
inline constexpr std::int64_t kLabelLogit = 2;
inline constexpr std::int64_t kRowStatistics = 3;  ///< how many

/// TRL's fused head makes logits a tile at a time. This adds the columns of a tile to the
/// statistics of its rows. With a cap c, c tanh(logit / c) is taken for each logit, here and in the
/// gradient.
struct FoldLogits {
  Matrix tile;             ///< (n, w), any type
  Tensor labels;           ///< int64 (n), each a column of the whole
  std::int64_t first = 0;  ///< the whole's column that is the tile's column 0
  Matrix statistics;       ///< fp32 (kRowStatistics, n), a column per row of the tile
  double softcap = 0;      ///< 0: none
};

/// log_sums[i] = log of the sum of a row's exponentials; losses[i] = log_sums[i] less the label's
/// logit.
struct LogSums {
  Matrix statistics;  ///< fp32 (kRowStatistics, n)
  Tensor log_sums;    ///< fp32 (n)
  Tensor losses;      ///< fp32 (n)
};

/// The tile is overwritten with the gradient, by it, of factor * the sum of losses.
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

/// out[i] = the first column of the largest element of row i.
struct Argmax {
  Matrix in;   ///< fp32 (M, V)
  Tensor out;  ///< int64 (M)
};

/// out[i] = -sum(exp(log_probs(i, :)) * log_probs(i, :)), as in PyTorch: an exponential, a product
/// and a sum, which go through memory.
struct Entropy {
  Matrix log_probs;  ///< fp32 (M, V), dense, as are the next two
  Matrix probs;      ///< written: exp(log_probs)
  Matrix terms;      ///< written: their product
  Tensor out;        ///< fp32 (M)
};

inline Work work_of(const Argmax& op) { return {"argmax", count(op.in), {op.in}, {op.out}}; }
inline Work work_of(const Entropy& op) {
  return {"entropy",
          3 * count(op.log_probs),
          {op.log_probs, op.probs, op.log_probs, op.terms},
          {op.probs, op.terms, op.out}};
}

}  // namespace dstune
