// Activation functions that are one kernel in PyTorch.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// torch's gelu(approximate="none"), gelu(approximate="tanh"), relu, silu, tanh, sigmoid; affine is
/// factor x + addend, a link of the chains that transformers makes others of.
enum class Activation { gelu, gelu_tanh, relu, silu, tanh, sigmoid, affine };

/// Backward reads the result for relu, tanh and sigmoid, otherwise the input.
constexpr bool saves_result(Activation kind) {
  return kind == Activation::relu || kind == Activation::tanh || kind == Activation::sigmoid;
}

/// out = f(x)
struct Activate {
  Activation kind = Activation::gelu;
  Tensor x;
  Tensor out;         ///< may be x
  double factor = 1;  ///< of affine alone
  double addend = 0;  ///< likewise
};

/// d_x = d_out f'(x); not for affine, whose gradient is affine itself.
struct ActivateBackward {
  Activation kind = Activation::gelu;
  Tensor d_out;
  Tensor saved;  ///< x or f(x): saves_result()
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

}  // namespace dstune
