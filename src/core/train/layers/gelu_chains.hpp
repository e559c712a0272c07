// Approximations of gelu that are chains of elementwise kernels in transformers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// QuickGELUActivation: x sigmoid(1.702 x), three kernels; keeps x and the sigmoid.
struct QuickGelu {
  std::size_t module;
  std::int64_t size;  ///< f, columns of x

  Buffer input{};
  Buffer sigmoid{};

  /// @returns y (M, f)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, Buffer x);
  /// Frees what was saved, and d_y.
  /// @returns the gradient by x (M, f)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y);
};

/// FastGELUActivation: 0.5 x (1 + tanh(0.79788 x (1 + 0.044715 x x))), nine kernels; keeps the
/// factors of its products and the tanh.
struct FastGelu {
  std::size_t module;
  std::int64_t size;  ///< f, columns of x

  Buffer input{};
  Buffer cubic{};          ///< 0.044715 x
  Buffer root{};           ///< 0.79788 x
  Buffer one_plus_cube{};  ///< 1 + 0.044715 x x
  Buffer tanh{};
  Buffer half{};  ///< 0.5 x
  Buffer one_plus_tanh{};

  /// @returns y (M, f)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, Buffer x);
  /// Frees what was saved, and d_y.
  /// @returns the gradient by x (M, f)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y);
};

}  // namespace dstune::layers
