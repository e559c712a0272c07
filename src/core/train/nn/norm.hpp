// Normalisations: torch.nn.LayerNorm, and Hugging Face's RMSNorm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// The module `name` with its "weight" and "bias", if it has these.
class LayerNorm {
 public:
  LayerNorm(const ModelNames& names, const std::string& name, double epsilon);

  /// @param x  (M, h)
  /// @returns (M, h)
  Value operator()(Tape& on, Value x) const;

 private:
  Value normalise(Tape& on, const Value& x) const;

  std::size_t module_;
  std::optional<std::size_t> weight_;  // none with elementwise_affine=False
  std::optional<std::size_t> bias_;
  double epsilon_;
};

/// The values that are multiplied by 1 / sqrt(mean(x^2) + epsilon): the fp32 copy of x, or in
/// T5LayerNorm x itself.
enum class Normalises { copy, input };

/// LlamaRMSNorm and the same of its kin: the module `name` with its "weight". It keeps what its
/// chain of kernels keeps: for each element an fp32 copy of x (x itself where that is fp32) and the
/// normalised x, unless the weight is frozen; an fp32 number per vector; and x in any type, if it
/// normalises x itself.
class RmsNorm {
 public:
  /// @param offset  is added to the weight; 1 for Gemma's norm
  RmsNorm(const ModelNames& names, const std::string& name, double epsilon, double offset = 0,
          Normalises what = Normalises::copy);

  /// @param x  (M, k n), of which every n columns are one vector
  /// @returns (M, k n)
  Value operator()(Tape& on, Value x) const;

 private:
  Value normalise(Tape& on, const Value& x) const;

  std::size_t module_;
  std::size_t weight_;  // tensor (n)
  std::int64_t size_;   // n
  double epsilon_;
  double offset_;
  Normalises what_;
};

}  // namespace dstune::nn
