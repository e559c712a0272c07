// Probabilities of scores, and their logarithms.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// probs = softmax(scores), row by row; of any floating-point types.
struct Softmax {
  Matrix scores;  ///< (rows, columns)
  Matrix probs;   ///< may be scores
};

/// d_scores = probs * (d_probs - rowsum(d_probs * probs))
struct SoftmaxBackward {
  Matrix d_probs;  ///< in the dtype of probs
  Matrix probs;
  Matrix d_scores;  ///< may be d_probs
};

inline Work work_of(const Softmax& op) {
  return {"softmax", 5 * count(op.scores), {op.scores}, {op.probs}};
}
inline Work work_of(const SoftmaxBackward& op) {
  return {"softmax_backward", 4 * count(op.probs), {op.d_probs, op.probs}, {op.d_scores}};
}

/// log_probs = log_softmax(logits), row by row; of one dtype, computed in fp32 and rounded once.
struct LogSoftmax {
  Matrix logits;     ///< (M, V)
  Matrix log_probs;  ///< (M, V)
};

/// d_logits = d_log_probs - exp(log_probs) * rowsum(d_log_probs), of one dtype, computed in fp32
/// and rounded once.
struct LogSoftmaxBackward {
  Matrix d_log_probs;
  Matrix log_probs;
  Matrix d_logits;
};

inline Work work_of(const LogSoftmax& op) {
  return {"log_softmax", 5 * count(op.logits), {op.logits}, {op.log_probs}};
}
inline Work work_of(const LogSoftmaxBackward& op) {
  return {"log_softmax_backward",
          4 * count(op.log_probs),
          {op.d_log_probs, op.log_probs},
          {op.d_logits}};
}

}  // namespace dstune
