// The attention of Phi-3, whose queries, keys and values are one product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/llama/llama.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/attention.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/rotary.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::llama {

/// o(attention(turned(q), turned(k), v)) with [q k v] = qkv(x). Keeps x, the product for the sake
/// of v, turned q and k, what the attention keeps, and its output once more by tokens: torch.cat
/// lays turned heads out by heads, which makes torch's attention do so too.
class Phi3Attention {
 public:
  Phi3Attention(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                const std::string& name, std::int64_t layer);

  /// As LlamaAttention's.
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                 const Buffer& mask, Buffer x, std::uint64_t seed);
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const layers::Rotary& rotary,
                  const Buffer& d_out, std::uint64_t seed);
  AttentionShape shape(const layers::Workspace& work, std::uint64_t seed) const;

 private:
  /// Where heads stand in the product.
  struct Part {
    std::int64_t first_column;
    std::int64_t heads;
  };
  Part queries() const { return {0, shape_.heads}; }
  Part keys() const { return {columns(queries()), shape_.kv_heads}; }
  Part values() const { return {columns(queries()) + columns(keys()), shape_.kv_heads}; }
  std::int64_t columns(const Part& part) const { return part.heads * shape_.head_size; }
  std::int64_t width() const { return (shape_.heads + 2 * shape_.kv_heads) * shape_.head_size; }

  Heads within(const layers::Workspace& work, const Buffer& product, const Part& part) const;
  Heads dense(const layers::Workspace& work, const Buffer& heads, const Part& part) const;
  Heads v(const layers::Workspace& work) const;
  Buffer turned(const layers::Workspace& work, const layers::Rotary& rotary,
                const Part& part) const;
  void attend(const layers::Workspace& work, const Buffer& mask, std::uint64_t seed);
  void leave_repeated(const layers::Workspace& work);
  Buffer product_gradient(const layers::Workspace& work, const layers::Rotary& rotary,
                          Buffer d_attention, std::uint64_t seed);
  Buffer widened(const layers::Workspace& work, Buffer d_part, const Part& part) const;
  const Buffer& attended() const { return by_tokens_ ? by_tokens_ : attention_.out; }

  AttentionShape shape_;  ///< but for the micro-batch

  std::size_t module_;
  layers::Linear o_proj_;
  layers::Linear qkv_proj_;

  layers::AttentionLayer attention_;
  Buffer input_;
  Buffer product_;    ///< (M, width())
  Buffer v_;          ///< where the product is not kept
  Buffer q_;          ///< turned
  Buffer k_;          ///< turned
  Buffer by_tokens_;  ///< sdpa
};

}  // namespace dstune::llama
