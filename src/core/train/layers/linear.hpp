// torch.nn.Linear, and Hugging Face's Conv1D, each with an adapter of LoRA's if it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Conv1D stores its weight [in, out], nn.Linear [out, in].
enum class WeightOrder { in_out, out_in };

class LoraAdapter;

/// y = x W + b with W (in, out), or x W^T + b with W (out, in). What is frozen has no gradient.
struct Linear {
  std::size_t module;
  std::size_t weight;               ///< tensor
  std::optional<std::size_t> bias;  ///< tensor
  std::int64_t in;                  ///< columns of x
  std::int64_t out;                 ///< columns of y
  WeightOrder order;
  /// x comes in as a matrix, not by sequences: DeepSpeed's function then adds the bias in the
  /// product, as torch's does.
  bool takes_matrix = false;
  /// What LoRA adds to it; null: nothing.
  std::unique_ptr<LoraAdapter> adapter{};

  /// The module `name` with its "weight" and, if it has one, its "bias".
  Linear(const ModelNames& names, const std::string& name, std::int64_t inputs,
         std::int64_t outputs, WeightOrder weight_order = WeightOrder::in_out,
         bool has_bias = true);
  /// Of parameters that other modules have too.
  Linear(std::size_t own_module, std::size_t weight_tensor, std::optional<std::size_t> bias_tensor,
         std::int64_t inputs, std::int64_t outputs, WeightOrder weight_order);
  ~Linear();
  Linear(Linear&& other) noexcept;
  Linear& operator=(Linear&& other) noexcept;

  /// False: backward does not read x, since the weight is frozen, and autograd does not save it.
  /// DeepSpeed's function saves it all the same.
  bool keeps_input(const Workspace& work, const ModuleHooks& hooks) const;

  /// @returns y (M, out)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const;

  /// Hands bias and weight gradient to the hooks, in the order in which they are complete: with
  /// torch's layers the weight's goes through a transposition first; DeepSpeed's function in place
  /// of nn.Linear's has input, weight and bias in this order. An adapter's come before them.
  /// @param x  forward's; not read unless keeps_input()
  /// @param[out] d_tied  if given, the weight's goes there: others are added to it
  /// @returns the gradient by x (M, in)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y, const Buffer& x,
                  Buffer* d_tied = nullptr) const;

 private:
  Buffer multiply(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const;
  Buffer differentiate(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                       const Buffer& x, Buffer* d_tied) const;
  Buffer weight_gradient(const Workspace& work, const Buffer& d_y, const Buffer& x) const;
  Matrix weight_matrix(const Tensor& tensor) const;
  Buffer bias_gradient(const Workspace& work, const Buffer& d_y) const;
  bool is_deepspeeds(const Workspace& work) const;
};

}  // namespace dstune::layers
