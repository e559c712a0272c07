// One layer of OPT: attention and MLP, each with its LayerNorm before it, or after its sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/model/opt/opt.hpp"
#include "core/train/families/opt/opt_attention.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::opt {

/// y + mlp(norm'(y)) with y = x + attention(norm(x)); or, with the norms behind, norm'(y +
/// mlp(y)) with y = norm(x + attention(x)). What PyTorch keeps per token with relu and without
/// dropout is 8 h + f elements, beside 4 a + 16 bytes of fp32, wherever the norms are.
class OptLayer {
 public:
  /// @param index  0 <= index < num_layers
  OptLayer(const ModelSpec& spec, const OptSettings& settings, const ModelNames& names,
           std::int64_t index);

  /// @param x     (M, h)
  /// @param mask  layers::attention_mask() of attention_shape()
  /// @returns the layer's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, const Buffer& mask,
                 std::uint64_t seed);
  /// Afterwards x is still there, see forget_input().
  Buffer take_input() { return std::move(norm_before_ ? attention_norm_.input : attention_input_); }

  /// Nobody else holds x any more: it goes unless it is saved.
  void forget_input(const layers::Workspace& /*work*/) {
    if (!saves_input_) attention_input_.reset();
  }

  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                  std::uint64_t seed);

  AttentionShape attention_shape(const layers::Workspace& work, std::uint64_t seed) const {
    return attention_.shape(work, seed);
  }

 private:
  /// A residual sum and the norm around it.
  struct Norms {
    layers::Norm norm;
    Buffer input{};
    Buffer stats{};

    Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x);
    Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_y);
  };

  Buffer attention_forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& x,
                           const Buffer& mask, std::uint64_t seed);
  Buffer mlp_forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& x,
                     std::uint64_t seed);
  Buffer mlp_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out);
  Buffer attention_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                            std::uint64_t seed);

  bool norm_before_;
  std::int64_t index_;

  std::size_t module_;
  OptAttention attention_;
  layers::DropoutLayer attention_dropout_;
  layers::ActivationFunction act_;
  Norms attention_norm_;
  layers::Linear fc1_;
  layers::Linear fc2_;
  layers::DropoutLayer mlp_dropout_;
  Norms mlp_norm_;

  bool saves_input_ = true;  ///< of the forward that ran: x itself, not a norm's of it
  Buffer attention_input_;   ///< (M, h), saved by the projections
  Buffer mlp_input_;         ///< (M, h), saved by fc1
  Buffer activated_;         ///< (M, f)
};

}  // namespace dstune::opt
