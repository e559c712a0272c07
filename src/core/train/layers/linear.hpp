// Hugging Face's Conv1D: y = x W + b with W stored [in, out].
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

struct Linear {
  std::size_t module;
  std::size_t weight;  ///< tensor
  std::size_t bias;    ///< tensor
  std::int64_t in;     ///< columns of x
  std::int64_t out;    ///< columns of y

  /// The module `name` with its "weight" and "bias".
  Linear(const ModelNames& names, const std::string& name, std::int64_t inputs,
         std::int64_t outputs);

  /// @returns y (M, out)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const;

  /// Hands bias and weight gradient to the hooks.
  /// @returns the gradient by x (M, in)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                  const Buffer& x) const;
};

}  // namespace dstune::layers
