// LayerNorm over the hidden size.
#pragma once

#include <cstddef>

#include "core/train/layers/workspace.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune::layers {

struct Norm {
  std::size_t module = 0;
  std::size_t weight = 0;  ///< tensor; the bias follows it

  /// @param[out] stats  mean and 1 / standard deviation, fp32: 8 bytes per row
  /// @returns y (M, h)
  Buffer forward(const Workspace& work, ZeroEngine& engine, const Buffer& x, Buffer& stats) const;

  /// Hands both gradients to the engine.
  /// @returns the gradient by x (M, h)
  Buffer backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_y, const Buffer& x,
                  const Buffer& stats) const;
};

}  // namespace dstune::layers
