// Elementwise operations on a tape, and the modules that consist of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/device/operations/activations.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// a + b, both of one shape; the result is a tensor of its own, as in PyTorch.
Value add(Tape& on, const Value& a, const Value& b);
/// a (M, h) + b (s, h); b is the same for every sequence of a batch.
Value add_broadcast(Tape& on, const Value& a, const Value& b);
/// a b, element by element.
Value multiply(Tape& on, const Value& a, const Value& b);
/// x multiplied by a number.
Value scale(Tape& on, const Value& x, double factor);
/// factor x + addend, one of the kernels of which transformers' activation functions consist.
Value affine(Tape& on, const Value& x, double factor, double addend = 0);
/// An activation that is one kernel of torch.nn.functional; `kind` must not be affine.
Value activate(Tape& on, Activation kind, const Value& x);
/// c tanh(x / c), in three kernels; it caps scores and logits.
Value soft_cap(Tape& on, Value x, double c);
/// at::softmax() of rows, with a result of `dtype`; its backward gives a gradient of the type of x.
Value softmax(Tape& on, const Value& x, DType dtype);

/// torch.nn.Dropout, or its function where there is no module; returns x itself if the probability
/// is 0.
struct Dropout {
  std::optional<std::size_t> module;
  double probability = 0;

  Value operator()(Tape& on, Value x, std::uint64_t seed) const;
};

/// The activation with a name of kActivationNames that is one kernel.
/// @throws std::invalid_argument  for any other name
Activation one_kernel_from(std::string_view name);

/// A module of transformers' ACT2FN, or its function alone.
class ActivationFunction {
 public:
  /// @param name  one of kActivationNames
  ActivationFunction(std::optional<std::size_t> module, std::string_view name)
      : module_(module), name_(name) {}

  Value operator()(Tape& on, Value x) const;

 private:
  std::optional<std::size_t> module_;
  std::string name_;
};

}  // namespace dstune::nn
