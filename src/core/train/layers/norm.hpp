// torch.nn.LayerNorm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

struct Norm {
  std::size_t module;
  std::optional<std::size_t> weight;  ///< tensor; none with elementwise_affine=False
  std::optional<std::size_t> bias;    ///< likewise
  std::int64_t size;                  ///< h, columns of x and y
  double epsilon;

  /// The module `name` with its "weight" and "bias", if it has them.
  Norm(const ModelNames& names, const std::string& name, std::int64_t columns, double eps,
       bool has_parameters = true);

  /// @param[out] stats  mean and 1 / standard deviation, fp32: 8 bytes per row
  /// @returns y (M, h)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x, Buffer& stats) const;

  /// Hands both gradients, if there are parameters, to the hooks.
  /// @returns the gradient by x (M, h)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y, const Buffer& x,
                  const Buffer& stats) const;

 private:
  /// A row that stands for a parameter that there is not: PyTorch's kernel does without.
  Buffer constant(const Workspace& work, double value) const;
};

}  // namespace dstune::layers
