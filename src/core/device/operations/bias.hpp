// The bias of a linear layer.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// inout(i, :) += bias
struct AddBias {
  Matrix inout;  ///< (M, n)
  Tensor bias;   ///< (n)
};

/// out = column sums of d_out
struct BiasGradient {
  Matrix d_out;  ///< (M, n)
  Tensor out;    ///< (n)
};

inline Work work_of(const AddBias& op) {
  return {"add_bias", count(op.inout), {op.inout, op.bias}, {op.inout}};
}
inline Work work_of(const BiasGradient& op) {
  return {"bias_gradient", count(op.d_out), {op.d_out}, {op.out}};
}

}  // namespace dstune
