// The activation of GPT-2's MLP.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/operations/gelu_new.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Hugging Face's NewGELUActivation, eight elementwise kernels: what each saves is kept
/// (GeluSaved).
struct NewGelu {
  std::size_t module;
  std::int64_t size;  ///< f, columns of x

  Buffer input{};
  Buffer tanh{};
  Buffer half_x{};
  Buffer one_plus_tanh{};

  /// @param x  (M, f)
  /// @returns y (M, f)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, Buffer x);

  /// Frees what was saved, and d_y.
  /// @returns the gradient by x (M, f)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y);

 private:
  GeluSaved saved(const Workspace& work) const;
};

}  // namespace dstune::layers
