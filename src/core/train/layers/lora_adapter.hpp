// LoRA's adapter of a linear layer, as PEFT's lora.Linear runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// y += scaling B(A(dropout(x))). Keeps A's result (M, r), and with dropout what A reads and a
/// mask. PyTorch's two further tensors of y's size, each for the time of a kernel, are not made:
/// what moves is the same.
class LoraAdapter {
 public:
  /// Of the layer `name`, whose modules are numbered from `module` on.
  LoraAdapter(const ModelNames& names, const std::string& name, std::size_t module,
              std::int64_t inputs, std::int64_t outputs);

  /// lora.Linear, around the layer and its adapter.
  std::size_t module() const { return module_; }
  /// True if A reads x itself: its owner keeps it for backward.
  bool keeps_input() const { return dropout_.probability == 0; }

  /// @param x  (M, in)
  /// @param y  the layer's result (M, out), which grows
  void forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x, const Buffer& y);

  /// Frees what was saved; hands the gradients of B and A to the hooks.
  /// @param x  forward's; not read unless keeps_input()
  /// @returns its part of the gradient by x (M, in)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y, const Buffer& x);

 private:
  std::size_t module_;
  std::int64_t outputs_;
  double scaling_;
  DropoutLayer dropout_;
  Linear a_;
  Linear b_;

  Buffer dropped_;  ///< (M, in); empty without dropout
  Buffer hidden_;   ///< (M, r)
};

}  // namespace dstune::layers
