// The metrics that a trainer logs of each token beside its loss.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out[i] = the first column of the largest element of row i.
struct Argmax {
  Matrix in;   ///< fp32 (M, V)
  Tensor out;  ///< int64 (M)
};

/// out[i] = -sum(exp(log_probs(i, :)) * log_probs(i, :)), as PyTorch has it: an exponential, a
/// product and a sum, with memory between them.
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
