// Activation functions, and the gates that they open.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Activation functions. Each is one kernel in PyTorch: torch's gelu(approximate="none"),
/// gelu(approximate="tanh"), relu, silu, tanh and sigmoid. affine is factor x + addend, one of the
/// kernels of which transformers' other activation functions consist.
enum class Activation { gelu, gelu_tanh, relu, silu, tanh, sigmoid, affine };

/// Whether backward reads the result (relu, tanh and sigmoid) or the input (the others).
constexpr bool saves_result(Activation kind) {
  return kind == Activation::relu || kind == Activation::tanh || kind == Activation::sigmoid;
}

/// out = f(x)
struct Activate {
  Activation kind = Activation::gelu;
  Tensor x;
  Tensor out;         ///< may be x
  double factor = 1;  ///< used by affine only
  double addend = 0;  ///< used by affine only
};

/// d_x = d_out f'(x). It does not take affine, whose gradient is affine itself.
struct ActivateBackward {
  Activation kind = Activation::gelu;
  Tensor d_out;
  Tensor saved;  ///< x, or f(x) if saves_result()
  Tensor d_x;    ///< may be d_out
};

/// out = a b, element by element.
struct Multiply {
  Tensor a;
  Tensor b;
  Tensor out;  ///< may be a or b
};

inline Work work_of(const Activate& op) { return {"activate", 4 * count(op.x), {op.x}, {op.out}}; }
inline Work work_of(const ActivateBackward& op) {
  return {"activate_backward", 6 * count(op.d_out), {op.d_out, op.saved}, {op.d_x}};
}
inline Work work_of(const Multiply& op) {
  return {"multiply", count(op.out), {op.a, op.b}, {op.out}};
}

/// gelu_new(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hugging Face's NewGELUActivation.
/// These are the tensors that it saves for backward, each (M, f): the eight elementwise kernels of
/// Hugging Face keep all of them (docs/deepspeed-step.md, "What a block keeps").
struct GeluSaved {
  Tensor tanh;           ///< tanh(sqrt(2/pi) (x + 0.044715 x^3))
  Tensor half_x;         ///< 0.5 x
  Tensor one_plus_tanh;  ///< 1 + tanh
};

/// out = gelu_new(x)
///
/// A device rounds to the storage type after the whole expression, or after each operation of it,
/// as eager PyTorch does. In the latter case x^3 is infinite in fp16 beyond |x| = 40.3, and out is
/// still right; beyond |x| = 147.8 3 x^2 is infinite too, and d_x is NaN, which the overflow check
/// sees.
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
// Values that are written over saved tensors are scratch.
inline Work work_of(const GeluNewBackward& op) {
  const GeluSaved& saved = op.saved;
  return {"gelu_new_backward",
          13 * count(op.x),
          {op.d_out, op.x, saved.tanh, saved.half_x, saved.one_plus_tanh},
          {op.d_x, Operand(saved.tanh).of(0), Operand(saved.half_x).of(0),
           Operand(saved.one_plus_tanh).of(0)}};
}

/// A gated activation of a product that has gate and value side by side: activated = f(the left
/// half of gate_up), product = activated * the right half. It takes two kernels, as in PyTorch.
struct Glu {
  Activation kind = Activation::silu;  ///< not affine
  Matrix gate_up;                      ///< (S, 2 f), dense
  Tensor activated;                    ///< (S f)
  Tensor product;                      ///< (S f)
};

/// d_up = d_product * activated, d_gate = d_product * up * f', in three kernels.
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
