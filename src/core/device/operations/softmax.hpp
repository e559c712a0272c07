// Probabilities of scores.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// probs = softmax(scores), row by row; any floating-point types.
struct Softmax {
  Matrix scores;  ///< (rows, columns)
  Matrix probs;   ///< may be scores
};

/// d_scores = probs * (d_probs - rowsum(d_probs * probs))
struct SoftmaxBackward {
  Matrix d_probs;  ///< of the dtype of probs
  Matrix probs;
  Matrix d_scores;  ///< may be d_probs
};

inline Work work_of(const Softmax& op) {
  return {"softmax", 5 * count(op.scores), {op.scores}, {op.probs}};
}
inline Work work_of(const SoftmaxBackward& op) {
  return {"softmax_backward", 4 * count(op.probs), {op.d_probs, op.probs}, {op.d_scores}};
}

}  // namespace dstune
