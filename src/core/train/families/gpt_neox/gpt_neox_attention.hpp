// GPTNeoXAttention: queries, keys and values from one product, rotated, interleaved by head.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/gpt_neox/gpt_neox.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/layers/attention.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/rotary.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt_neox {

/// Keeps the product (M, 3h) for the values in it, and the rotated queries and keys (M, h) each.
/// These torch.cat has laid out by heads, so that of torch.s attention is too: the projection keeps
/// another, by tokens, beside it.
class NeoxAttention {
 public:
  /// @param name  of the module
  NeoxAttention(const ModelSpec& spec, const NeoxSettings& settings, const ModelNames& names,
                const std::string& name);

  /// @param x     (M, h); its owner keeps it for backward
  /// @param mask  layers::attention_mask() of shape()
  /// @param seed  of the dropout of attention
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                 const Buffer& x, const Buffer& mask, std::uint64_t seed);
  /// Frees what was saved.
  /// @param seed  forward's
  /// @returns the gradient by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                  const Buffer& d_out, const Buffer& x, std::uint64_t seed);

  AttentionShape shape(const layers::Workspace& work, std::uint64_t seed) const;
  /// True if backward reads x.
  bool keeps_input(const layers::Workspace& work, const ModuleHooks& hooks) const {
    return query_key_value_.keeps_input(work, hooks);
  }

 private:
  /// What the projection reads.
  const Buffer& attended() const { return by_tokens_ ? by_tokens_ : attention_.out; }
  /// q, k or v (0, 1, 2) of the product; nothing of an empty one.
  Heads interleaved(const layers::Workspace& work, const Buffer& qkv, std::int64_t part) const;
  Heads dense(const layers::Workspace& work, const Buffer& heads) const;
  Buffer product_gradient(const layers::Workspace& work, const layers::Rotary& rotary,
                          Buffer d_attention, std::uint64_t seed);
  Buffer side_by_side(const layers::Workspace& work, const std::array<Buffer, 3>& parts) const;

  std::int64_t heads_;
  std::int64_t head_size_;
  double dropout_;
  std::size_t module_;
  layers::Linear query_key_value_;
  layers::Linear dense_;

  Buffer qkv_;
  Buffer q_;
  Buffer k_;
  layers::AttentionLayer attention_{};
  Buffer by_tokens_;  ///< (M, h); sdpa alone: the others have it so
};

}  // namespace dstune::gpt_neox
