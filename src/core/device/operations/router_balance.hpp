// The loss that keeps experts evenly used: load_balancing_loss_func of transformers.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// counts(e) += pairs of expert e, sums(e) += its probabilities.
struct AddRouting {
  Matrix probs;    ///< (M, E), any floating-point type
  Tensor experts;  ///< int64 (M k)
  Tensor counts;   ///< fp32 (E)
  Tensor sums;     ///< fp32 (E)
};

/// loss += factor * E * sum over e of counts(e) / rows * sums(e) / rows
struct BalanceLoss {
  Tensor counts;
  Tensor sums;
  std::int64_t rows;  ///< of all layers
  double factor = 1;
  Tensor loss;  ///< fp32, one element
};

/// d_probs(i, e) = factor * E * counts(e) / rows^2
struct BalanceLossBackward {
  Tensor counts;
  std::int64_t rows;
  double factor = 1;
  Matrix d_probs;  ///< (M, E)
};

inline Work work_of(const AddRouting& op) {
  return {"add_routing", count(op.probs), {op.probs, op.experts}, {op.counts, op.sums}};
}
inline Work work_of(const BalanceLoss& op) {
  return {"balance_loss", 2 * count(op.counts), {op.counts, op.sums}, {number(op.loss)}};
}
inline Work work_of(const BalanceLossBackward& op) {
  return {"balance_loss_backward", count(op.d_probs), {op.counts}, {op.d_probs}};
}

}  // namespace dstune
