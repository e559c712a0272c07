// What T5 adds to the scores of attention: learnt by relative position, or nothing at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/device/operations/position_bias.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

/// One for all layers of a stack: the first makes it, each adds its part of the gradient. That of
/// cross attention is zeros, which transformers makes and adds like any other.
class PositionBias {
 public:
  /// @param attention  the first layer's module, which has "relative_attention_bias"; "": zeros
  PositionBias(const ModelSpec& spec, const ModelNames& names, const std::string& attention,
               bool causal);

  /// In the first layer's forward.
  void make(const layers::Workspace& queries, const layers::Workspace& keys, ModuleHooks& hooks);
  /// When the stack's forward is over: what backward does not need.
  void forget(const layers::Workspace& queries);

  /// scores + bias, and the lowest number where a key is hidden: eager attention's sums, each a new
  /// tensor.
  Buffer added_to(const layers::Workspace& queries, const ScoreShape& shape, Buffer scores) const;

  /// As sdpa's memory-efficient kernel reads it, with rows of whole packs; empty where the zeros
  /// serve as they are.
  Buffer stacked(const layers::Workspace& queries, const ScoreShape& shape) const;
  /// That, or the zeros: (heads, queries, keys).
  Tensor tensor_of(const layers::Workspace& queries, const ScoreShape& shape,
                   const Buffer& stacked) const;
  bool is_causal() const { return causal_; }
  bool is_learnt() const { return table_ && table_->is_trainable; }

  /// @param d_scores  of one layer, all of the batch
  void add_gradient(const layers::Workspace& queries, const ScoreShape& shape, Tensor d_scores);
  /// In the first layer's backward: hands the table's gradient to the hooks. Of zeros: frees them.
  void finish(const layers::Workspace& queries, ModuleHooks& hooks);

 private:
  std::int64_t heads_;
  std::int64_t buckets_;
  std::int64_t max_distance_;
  bool causal_;
  std::optional<layers::EmbeddingTable> table_;

  Buffer numbers_;  ///< int64 (queries * keys): the bucket of each pair
  Buffer bias_;     ///< (queries, keys, heads); zeros: (heads, queries, keys)
  Buffer mask_;     ///< of eager attention
  Buffer d_bias_;   ///< (queries, keys, heads)
};

}  // namespace dstune::t5
