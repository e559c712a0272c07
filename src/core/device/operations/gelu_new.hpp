// gelu_new(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hugging Face's NewGELUActivation.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The tensors that gelu_new saves for backward, each (M, f): HF's eight elementwise kernels keep
/// all of these (docs/deepspeed-step.md, "What a block keeps").
struct GeluSaved {
  Tensor tanh;           ///< tanh(sqrt(2/pi) (x + 0.044715 x^3))
  Tensor half_x;         ///< 0.5 x
  Tensor one_plus_tanh;  ///< 1 + tanh
};

/// out = gelu_new(x)
///
/// A device rounds to the storage type after the whole expression, or after each operation of it,
/// as eager PyTorch does. With the latter x^3 is an infinity in fp16 beyond |x| = 40.3, and out
/// still right; beyond |x| = 147.8 so is 3 x^2, and d_x is NaN, which the overflow check sees.
struct GeluNew {
  Tensor x;
  GeluSaved saved;  ///< written
  Tensor out;
};

/// d_x = d_out gelu_new'(x)
struct GeluNewBackward {
  Tensor d_out;
  Tensor x;
  GeluSaved saved;  ///< its contents are lost: eager PyTorch's chain of kernels has room there
  Tensor d_x;       ///< not d_out, which the chain reads after it has written d_x
};

inline Work work_of(const GeluNew& op) {
  return {"gelu_new",
          9 * count(op.x),
          {op.x},
          {op.saved.tanh, op.saved.half_x, op.saved.one_plus_tanh, op.out}};
}
// Values that are kept where saved tensors were are scratch.
inline Work work_of(const GeluNewBackward& op) {
  const GeluSaved& saved = op.saved;
  return {"gelu_new_backward",
          13 * count(op.x),
          {op.d_out, op.x, saved.tanh, saved.half_x, saved.one_plus_tanh},
          {op.d_x, Operand(saved.tanh).of(0), Operand(saved.half_x).of(0),
           Operand(saved.one_plus_tanh).of(0)}};
}

}  // namespace dstune
