// One layer of GPT-NeoX: attention and MLP beside each other, or one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/model/gpt_neox/gpt_neox.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/gpt_neox/gpt_neox_attention.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/rotary.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt_neox {

/// x + attention(norm(x)) + mlp(norm'(x)) with use_parallel_residual; otherwise y + mlp(norm'(y))
/// with y = x + attention(norm(x)). What PyTorch keeps per token, in elements, without dropout and
/// with gelu: 10 h + 2 f, h more one after the other, beside 4 a + 16 bytes of fp32.
class NeoxLayer {
 public:
  /// @param index  0 <= index < num_layers
  NeoxLayer(const ModelSpec& spec, const NeoxSettings& settings, const ModelNames& names,
            std::int64_t index);

  /// @param x     (M, h)
  /// @param mask  layers::attention_mask() of attention_shape()
  /// @returns the layer's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                 Buffer x, const Buffer& mask, std::uint64_t seed);

  Buffer take_input() { return std::move(input_); }

  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                  Buffer d_out, std::uint64_t seed);

  AttentionShape attention_shape(const layers::Workspace& work, std::uint64_t seed) const {
    return attention_.shape(work, seed);
  }

 private:
  Buffer attention_forward(const layers::Workspace& work, ModuleHooks& hooks,
                           const layers::Rotary& rotary, const Buffer& mask, std::uint64_t seed);
  Buffer mlp_forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& x,
                     std::uint64_t seed);
  /// @returns the gradient by norm'(x)'s x, `x`
  Buffer mlp_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                      const Buffer& x);
  Buffer attention_backward(const layers::Workspace& work, ModuleHooks& hooks,
                            const layers::Rotary& rotary, const Buffer& d_out, std::uint64_t seed);

  bool is_parallel_;
  std::int64_t index_;

  std::size_t module_;
  layers::Norm input_norm_;
  layers::Norm post_attention_norm_;
  layers::DropoutLayer attention_dropout_;
  layers::DropoutLayer mlp_dropout_;
  NeoxAttention attention_;
  std::size_t mlp_;
  layers::Linear h_to_4h_;
  layers::Linear to_h_;
  layers::ActivationFunction act_;

  Buffer input_;  ///< (M, h), saved by the first LayerNorm, or by both
  Buffer input_stats_;
  Buffer attention_input_;  ///< (M, h)
  Buffer middle_;           ///< (M, h), y; empty where both are beside each other
  Buffer mlp_stats_;
  Buffer mlp_input_;  ///< (M, h)
  Buffer activated_;  ///< (M, f)
};

}  // namespace dstune::gpt_neox
