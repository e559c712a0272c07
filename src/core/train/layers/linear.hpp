// Hugging Face's Conv1D: y = x W + b with W stored [in, out].
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/train/layers/workspace.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune::layers {

struct Linear {
  std::size_t module = 0;
  std::size_t weight = 0;  ///< tensor; the bias follows it
  std::int64_t in = 0;     ///< columns of x
  std::int64_t out = 0;    ///< columns of y

  /// @returns y (M, out)
  Buffer forward(const Workspace& work, ZeroEngine& engine, const Buffer& x) const;

  /// Hands bias and weight gradient to the engine.
  /// @returns the gradient by x (M, in)
  Buffer backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_y,
                  const Buffer& x) const;
};

}  // namespace dstune::layers
