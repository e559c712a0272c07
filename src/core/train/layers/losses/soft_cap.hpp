// A cap on logits, as Gemma 2 has it.
#pragma once

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// c tanh(x / c) as transformers and TRL write it: three kernels, each with a tensor of its own, of
/// which the hyperbolic tangent is kept. All are of one type and length.
struct SoftCap {
  Buffer tanh{};

  /// @param x  freed when its last reader is done
  Buffer forward(const Workspace& work, double cap, Buffer x, DType dtype);
  /// Frees what was kept.
  /// @param d_out  likewise
  Buffer backward(const Workspace& work, double cap, Buffer d_out, DType dtype);
};

}  // namespace dstune::layers
