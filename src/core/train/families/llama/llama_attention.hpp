// The attention of Llama and its kin, between a block's first norm and its residual.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/llama/llama.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/attention.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/rms_norm_layer.hpp"
#include "core/train/layers/rotary.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::llama {

/// o(attention(turned(q(x)), turned(k(x)), v(x))). Keeps x, turned q and k, v, what the attention
/// keeps and, where heads are normalised, what these norms keep.
class LlamaAttention {
 public:
  LlamaAttention(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                 const std::string& name, std::int64_t layer);

  /// @param mask  layers::attention_mask() of shape()
  /// @param x     (M, h)
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                 const Buffer& mask, Buffer x, std::uint64_t seed);

  /// Frees everything saved.
  /// @returns the gradient by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                  const Buffer& d_out, std::uint64_t seed);

  AttentionShape shape(const layers::Workspace& work, std::uint64_t seed) const;

 private:
  /// q or k: a projection, maybe a norm of each head, and a turn.
  struct Projection {
    layers::Linear linear;
    std::optional<layers::RmsNormLayer> norm;
    std::int64_t heads;
    Buffer projected{};  ///< what the norm saves of its input: fp32
    Buffer turned{};
  };

  Buffer normed(const layers::Workspace& work, ModuleHooks& hooks, Projection& part,
                Buffer projected) const;
  Buffer norm_back(const layers::Workspace& work, ModuleHooks& hooks, Projection& part,
                   Buffer d_heads) const;
  void turn(const layers::Workspace& work, const layers::Rotary& rotary, Projection& part,
            const Buffer& normed) const;
  Buffer turn_back(const layers::Workspace& work, const layers::Rotary& rotary,
                   const Projection& part, const Buffer& d_turned) const;
  void project_back(const layers::Workspace& work, ModuleHooks& hooks, Projection& part,
                    Buffer d_heads, const Buffer& d_x) const;
  void attend(const layers::Workspace& work, std::uint64_t seed, const Buffer& mask);
  void attend_back(const layers::Workspace& work, std::uint64_t seed, Buffer d_out, Buffer& d_q,
                   Buffer& d_k, Buffer& d_v);
  Heads heads_of(const layers::Workspace& work, const Buffer& buffer, std::int64_t heads) const;

  std::int64_t head_size_;
  bool norms_come_late_;  ///< behind all three projections
  AttentionShape shape_;  ///< but for the micro-batch

  std::size_t module_;
  Projection q_;
  Projection k_;
  layers::Linear v_proj_;
  layers::Linear o_proj_;

  layers::AttentionLayer attention_;
  Buffer input_;
  Buffer v_;
};

}  // namespace dstune::llama
