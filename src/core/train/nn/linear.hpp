// torch.nn.Linear, and Hugging Face's Conv1D, each with a LoRA adapter if it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// The product alone: y = x W^T + b with W (out, in), or x W + b with Conv1D's W (in, out).
struct Product {
  std::size_t module = 0;
  std::size_t weight = 0;           ///< tensor
  std::optional<std::size_t> bias;  ///< tensor
  std::int64_t in = 0;              ///< columns of x
  std::int64_t out = 0;             ///< columns of y
  bool is_conv1d = false;
  /// x comes in as a matrix, not by sequences: DeepSpeed's function then adds the bias within the
  /// product, as torch's does.
  bool takes_matrix = false;

  Value operator()(Tape& on, Value x) const;

 private:
  Value multiply(Tape& on, const Value& x) const;
};

/// The module `name` with its "weight" and, if it has one, its "bias"; with LoRA, PEFT's
/// lora.Linear around it: y + scaling B(A(dropout(x))).
class Linear {
 public:
  Linear(const ModelNames& names, const std::string& name, bool takes_matrix = false);

  std::size_t weight() const { return base_.weight; }
  /// @param x  (M, in)
  /// @returns (M, out)
  Value operator()(Tape& on, Value x) const;

 private:
  struct Adapter {
    std::size_t module;
    double scaling;
    Dropout dropout;
    Product a, b;
  };

  Product base_;
  std::optional<Adapter> adapter_;
};

}  // namespace dstune::nn
