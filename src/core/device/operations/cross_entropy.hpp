// Loss and gradient of a chunk of logits in one pass, as Liger's kernel has it.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// sum += factor_of_loss * the sum over rows with labels[i] >= 0 of -log_softmax(logits(i,
/// :))[labels[i]]; logits become gradient_factor times the gradient of that sum by them, zero in
/// rows without a label.
struct CrossEntropy {
  Matrix logits;  ///< (M, V), any type; overwritten
  Tensor labels;  ///< int64 (M)
  double loss_factor = 1;
  double gradient_factor = 1;
  Tensor sum;  ///< fp32, one element
};

inline Work work_of(const CrossEntropy& op) {
  return {"cross_entropy",
          8 * count(op.logits),
          {op.logits, op.logits, op.labels, number(op.sum)},
          {op.logits, number(op.sum)}};
}

}  // namespace dstune
