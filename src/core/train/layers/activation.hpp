// The activation function of an MLP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/device/operations/activate.hpp"
#include "core/train/layers/gelu_chains.hpp"
#include "core/train/layers/new_gelu.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// One kernel of torch.nn.functional. Keeps its input where that is what it saves; a saved result
/// is the tensor that whoever comes next saves too.
struct OneKernel {
  std::optional<std::size_t> module;  ///< none: a function, which no hook sees
  std::int64_t size;                  ///< columns of x
  Activation kind;

  Buffer input{};

  Buffer forward(const Workspace& work, ModuleHooks& hooks, Buffer x);
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y, Buffer y);
};

/// Of a name of kActivationNames that is one kernel. @throws std::invalid_argument of any other
Activation one_kernel_from(std::string_view name);

/// A module of transformers' ACT2FN, with what its kernels save for backward.
class ActivationFunction {
 public:
  /// @param module  none: the function alone, of those that are one kernel
  /// @param name    one of kActivationNames
  /// @param size    f, columns of x
  ActivationFunction(std::optional<std::size_t> module, std::string_view name, std::int64_t size);

  /// True if backward reads y.
  bool reads_result() const;

  /// @param x  (M, f)
  /// @returns y (M, f)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, Buffer x);

  /// Frees what was saved.
  /// @param d_y  gradient by y; freed
  /// @param y    what forward returned, of which nobody but this function is a reader any more;
  ///             freed, and first of all where it is not needed here either; may be empty then
  /// @returns the gradient by x (M, f)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y, Buffer y);

 private:
  using Function = std::variant<OneKernel, NewGelu, FastGelu, QuickGelu>;

  static Function function_of(std::optional<std::size_t> module, std::string_view name,
                              std::int64_t size);

  Function function_;
};

}  // namespace dstune::layers
