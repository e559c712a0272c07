// Gated activation of a product that has gate and value side by side.
#pragma once

#include "core/device/operations/activate.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// activated = f(the left half of gate_up), product = activated * its right half. Two kernels, as
/// in PyTorch.
struct Glu {
  Activation kind = Activation::silu;  ///< not affine
  Matrix gate_up;                      ///< (S, 2 f), dense
  Tensor activated;                    ///< (S f)
  Tensor product;                      ///< (S f)
};

/// d_up = d_product * activated, d_gate = d_product * up * f'. Three kernels.
struct GluBackward {
  Activation kind = Activation::silu;
  Tensor d_product;  ///< (S f)
  Matrix gate_up;
  Tensor activated;
  Tensor d_up;    ///< (S f)
  Tensor d_gate;  ///< (S f)
};

inline Work work_of(const Glu& op) {
  const Operand half = Operand(op.gate_up).of(op.gate_up.size() / 2);
  return {"glu", 5 * count(op.product), {half, op.activated, half}, {op.activated, op.product}};
}
inline Work work_of(const GluBackward& op) {
  const Operand half = Operand(op.gate_up).of(op.gate_up.size() / 2);
  return {"glu_backward",
          8 * count(op.d_product),
          {op.d_product, half, op.d_product, op.activated, op.d_gate, half},
          {op.d_gate, op.d_up, op.d_gate}};
}

}  // namespace dstune
