// DeBERTa's convolution beside the first layer: norm(residual + activation(conv(x))).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::deberta {

/// x times a mask of ones, one number per row, which the node keeps.
Value times_mask(Tape& on, const Value& x);

/// ConvLayer, as a product with the neighbours that each token sees (Unfold); backward makes that
/// operand anew. PyTorch calls cuDNN, whose workspace is not known. Rows stay in the order of
/// tokens, where torch lays them out by columns; as many copies are made here as there.
class Convolution {
 public:
  Convolution(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
              const std::string& name);

  /// @param x         (M, h), the first layer's input
  /// @param residual  (M, h), the first layer's output
  /// @param seed      the micro-step's seed
  /// @returns (M, h)
  Value operator()(Tape& on, const Value& x, const Value& residual, std::uint64_t seed) const;

 private:
  Value convolve(Tape& on, const Value& x) const;
  void convolve_backward(Tape& back, const Value& d, const Value& x, std::size_t node) const;
  Value unfolded(const Tape& on, const Value& x) const;
  Matrix weights(const Tensor& tensor) const { return as_matrix(tensor, size_, size_ * width_); }

  std::size_t module_;
  std::size_t conv_;    // module
  std::size_t weight_;  // tensor (h, h, width)
  std::size_t bias_;
  std::int64_t size_;  // h
  std::int64_t width_;
  nn::Dropout dropout_;
  nn::ActivationFunction activation_;
  nn::LayerNorm norm_;
};

}  // namespace dstune::deberta
