// torch.nn.Linear, and Hugging Face's Conv1D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Conv1D stores its weight [in, out], nn.Linear [out, in].
enum class WeightOrder { in_out, out_in };

/// y = x W + b with W (in, out), or x W^T + b with W (out, in).
struct Linear {
  std::size_t module;
  std::size_t weight;               ///< tensor
  std::optional<std::size_t> bias;  ///< tensor
  std::int64_t in;                  ///< columns of x
  std::int64_t out;                 ///< columns of y
  WeightOrder order;

  /// The module `name` with its "weight" and, if it has one, its "bias".
  Linear(const ModelNames& names, const std::string& name, std::int64_t inputs,
         std::int64_t outputs, WeightOrder weight_order = WeightOrder::in_out,
         bool has_bias = true);

  /// @returns y (M, out)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const;

  /// Hands bias and weight gradient to the hooks.
  /// @returns the gradient by x (M, in)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                  const Buffer& x) const;

 private:
  Matrix weight_matrix(const Tensor& tensor) const;
  void bias_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y) const;
  bool passes_over_bias(const Workspace& work) const;
};

}  // namespace dstune::layers
