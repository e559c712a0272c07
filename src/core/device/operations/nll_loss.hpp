// The loss: next-token cross-entropy over rows whose label is >= 0.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// labels[i] = tokens[i + 1] within a sequence, and -1 at its end.
struct NextTokens {
  Tensor tokens;              ///< int64, whole sequences
  std::int64_t sequence = 1;  ///< the length of one
  Tensor labels;              ///< int64, as many
};

/// sum += factor * the mean over the counted rows of -log_probs[i, labels[i]]; nothing where none
/// counts.
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

}  // namespace dstune
