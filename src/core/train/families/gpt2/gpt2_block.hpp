// One transformer block of GPT-2: x + attention(ln_1(x)), then that + mlp(ln_2(that)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/device/operations/attention.hpp"
#include "core/model/gpt2/gpt2.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/attention.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt2 {

/// What PyTorch keeps of one block for backward (docs/deepspeed-step.md, "What a block keeps"): per
/// token and in elements 8 h + 5 f, beside 4 a + 16 bytes of fp32 and one byte per element for each
/// residual dropout.
class Block {
 public:
  /// @param spec  must outlive the block
  /// @param index  0 <= index < num_layers
  Block(const ModelSpec& spec, const Gpt2Settings& settings, const ModelNames& names,
        std::int64_t index);

  /// @param x  (M, h)
  /// @param mask  layers::attention_mask() of attention_shape()
  /// @returns the block's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, const Buffer& mask,
                 std::uint64_t seed);
  Buffer take_input() { return std::move(input_); }

  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                  std::uint64_t seed);

  AttentionShape attention_shape(const layers::Workspace& work, std::uint64_t seed) const;

 private:
  Buffer attention_forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& mask,
                           std::uint64_t seed);
  Buffer mlp_forward(const layers::Workspace& work, ModuleHooks& hooks, std::uint64_t seed);
  Buffer attention_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                            std::uint64_t seed);
  Buffer mlp_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out);
  /// q, k or v (0, 1, 2) in a matrix (M, 3h); nothing of an empty one.
  Heads part(const layers::Workspace& work, const Buffer& qkv, std::int64_t index) const;

  const ModelSpec& spec_;
  std::int64_t index_;
  double score_scale_;  ///< as AttentionShape::scale

  std::size_t module_;
  layers::Norm ln_1_;
  std::size_t attn_;
  layers::Linear c_attn_;
  layers::AttentionLayer attention_;
  layers::Linear attn_c_proj_;
  layers::DropoutLayer resid_dropout_;
  layers::Norm ln_2_;
  std::size_t mlp_;
  layers::Linear c_fc_;
  layers::Linear mlp_c_proj_;
  layers::ActivationFunction act_;
  layers::DropoutLayer dropout_;

  Buffer input_;       ///< (M, h), saved by ln_1
  Buffer ln_1_stats_;  ///< mean, rstd
  Buffer ln_1_out_;    ///< (M, h)
  Buffer qkv_;         ///< (M, 3h)
  Buffer middle_;      ///< (M, h), the residual between attention and MLP, saved by ln_2
  Buffer ln_2_stats_;
  Buffer ln_2_out_;   ///< (M, h)
  Buffer activated_;  ///< (M, f), output of act
};

}  // namespace dstune::gpt2
