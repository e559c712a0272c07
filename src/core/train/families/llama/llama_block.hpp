// One decoder layer of Llama and its kin: x + attention(norm(x)), then that + mlp(norm(that)); with
// post norms both are normalised before they are added, and Phi-3's drop out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "core/train/families/llama/llama_attention.hpp"
#include "core/train/families/llama/llama_mlp.hpp"
#include "core/train/families/moe/moe_block.hpp"
#include "core/train/families/phi3/phi3_attention.hpp"
#include "core/train/families/phi3/phi3_mlp.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/rms_norm_layer.hpp"

namespace dstune::llama {

/// What PyTorch keeps of one layer for backward (docs/deepspeed-step.md, "What a block keeps").
class LlamaBlock {
 public:
  LlamaBlock(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
             std::int64_t index);

  AttentionShape attention_shape(const layers::Workspace& work, std::uint64_t seed) const {
    return std::visit([&](const auto& part) { return part.shape(work, seed); }, attention_);
  }

  /// Afterwards x is still there, see forget_input().
  /// @param mask  layers::attention_mask() of attention_shape()
  /// @param x  (M, h)
  /// @returns the layer's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                 const Buffer& mask, Buffer x, std::uint64_t seed);

  Buffer take_input() { return std::move(input_); }

  /// Nobody else holds x any more: it goes unless it is saved.
  void forget_input(const layers::Workspace& work);

  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                  Buffer d_out, std::uint64_t seed);

  /// What stands in place of the MLP, or null.
  MoeBlock* experts() { return std::get_if<MoeBlock>(&mlp_); }

 private:
  using AttentionPart = std::variant<LlamaAttention, Phi3Attention>;
  using MlpPart = std::variant<LlamaMlp, Phi3Mlp, MoeBlock>;

  static AttentionPart attention_of(const ModelSpec& spec, const LlamaSettings& settings,
                                    const ModelNames& names, std::int64_t index);
  static MlpPart mlp_of(const ModelSpec& spec, const LlamaSettings& settings,
                        const ModelNames& names, std::int64_t index);
  Buffer attend(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                const Buffer& mask, std::uint64_t seed);
  Buffer run_mlp(const layers::Workspace& work, ModuleHooks& hooks, std::uint64_t seed);

  std::int64_t index_;
  std::size_t module_;
  AttentionPart attention_;
  MlpPart mlp_;
  layers::RmsNormLayer input_norm_;
  layers::RmsNormLayer middle_norm_;
  std::optional<layers::RmsNormLayer> post_attention_norm_;
  std::optional<layers::RmsNormLayer> post_mlp_norm_;
  std::optional<layers::DropoutLayer> attention_dropout_;
  std::optional<layers::DropoutLayer> mlp_dropout_;

  Buffer input_;     ///< (M, h)
  Buffer middle_;    ///< (M, h), the residual between attention and MLP
  Buffer attended_;  ///< (M, h), what the attention gives to its post norm, if that saves it
  Buffer mlp_out_;   ///< (M, h), likewise
};

}  // namespace dstune::llama
