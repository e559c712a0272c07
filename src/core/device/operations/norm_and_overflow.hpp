// Numbers about gradients that stay on the device: tensors of one element.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// sum += the squares of `in`, added up in double.
struct AddSquares {
  Tensor in;
  Tensor sum;  ///< fp32 or fp64, one element
};

/// flag = 1 if `in` has an inf or a NaN; otherwise it stays as it is.
struct FindInfOrNan {
  Tensor in;
  Tensor flag;  ///< int8, one element
};

/// The factor that undoes the loss scale and clips: factor = 1 / (loss_scale * max(1, (norm + 1e-6)
/// / clipping)) with the norm of the unscaled gradients, sqrt(squares) / loss_scale.
struct ClipFactor {
  Tensor squares;       ///< fp32 or fp64, one element
  double clipping = 0;  ///< 0: none
  double loss_scale = 1;
  Tensor factor;  ///< fp32, one element
};

inline Work work_of(const AddSquares& op) {
  return {"add_squares", 2 * count(op.in), {op.in, number(op.sum)}, {number(op.sum)}};
}
inline Work work_of(const FindInfOrNan& op) {
  return {"find_inf_or_nan", count(op.in), {op.in}, {number(op.flag)}};
}
inline Work work_of(const ClipFactor& op) {
  return {"clip_factor", 6, {number(op.squares)}, {number(op.factor)}};
}

}  // namespace dstune
