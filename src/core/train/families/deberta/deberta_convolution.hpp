// DeBERTa's convolution beside the first layer: norm(residual + activation(conv(x))).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// As a product with what each token sees of its neighbours (Unfold), which is made anew in
/// backward; PyTorch calls cuDNN, whose own room is not known. Rows stay in the order of tokens,
/// where torch has them by columns; so many copies are made here too.
class Convolution {
 public:
  Convolution(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names);

  /// @param x         (M, h), the first layer's input
  /// @param residual  (M, h), its output
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& x,
                 Buffer residual, std::uint64_t seed);

  struct Gradients {
    Buffer x;
    Buffer residual;
  };
  /// Frees everything saved.
  Gradients backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out);

 private:
  Buffer convolve(const layers::Workspace& work, ModuleHooks& hooks) const;
  Buffer convolve_backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_y);
  Buffer unfolded(const layers::Workspace& work) const;
  Matrix weights(const Tensor& tensor) const { return as_matrix(tensor, size_, size_ * width_); }

  std::int64_t size_;   ///< h
  std::int64_t width_;  ///< conv_kernel_size
  layers::Scopes scopes_;
  std::size_t module_;
  std::size_t weight_;  ///< tensor (h, h, width)
  std::size_t bias_;
  layers::DropoutLayer dropout_;
  layers::ActivationFunction activation_;
  bool saves_result_;  ///< of the activation
  layers::Norm norm_;

  Buffer input_;      ///< (M, h)
  Buffer hidden_;     ///< one byte per token: 1 if it is hidden, which none is
  Buffer activated_;  ///< (M, h), if the activation saves it
  Buffer sum_;        ///< (M, h), saved by the norm
  Buffer stats_;
  Buffer mask_;  ///< a number per token
};

}  // namespace dstune::deberta
