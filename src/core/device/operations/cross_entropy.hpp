// Cross-entropy of a chunk of logits and its gradient in one pass, as Liger's kernel has it.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// losses[i] = -log_softmax(logits(i, :))[labels[i]]; logits become its gradient by them. Both are
/// zero in rows whose label is below 0. With a cap c, c tanh(logit / c) stands for a logit.
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

}  // namespace dstune
