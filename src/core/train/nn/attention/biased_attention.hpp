// Attention with a bias of its scores by relative position, of a sequence to itself or to another.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/train/tape/tape.hpp"

namespace dstune::nn {

/// The settings of one call. A bias is (queries * keys, heads), as rows of a table of biases are
/// looked up, or a stack (heads, queries, keys); it is the same for all sequences of a batch.
struct BiasedShape {
  ScoreShape scores;
  std::int64_t head_size = 0;
  bool causal = false;
  double dropout = 0;
  std::uint64_t seed = 0;

  /// The shapes of heads that lie in rows of queries, and of keys.
  AttentionShape of_queries() const { return side(scores.queries); }
  AttentionShape of_keys() const { return side(scores.keys); }

 private:
  AttentionShape side(std::int64_t sequence) const {
    return {.batch = scores.batch,
            .sequence = sequence,
            .heads = scores.heads,
            .kv_heads = scores.heads,
            .head_size = head_size,
            .causal = causal};
  }
};

/// scores + bias, as eager attention adds them.
Value add_bias(Tape& on, const ScoreShape& shape, const Value& scores, const Value& bias);

/// transformers' sdpa_attention_forward() with the bias as its mask, and with scores that are not
/// scaled. It keeps what PyTorch's memory-efficient kernel keeps: q, k, v, the output, the
/// log-sum-exp, and a stack of biases with rows of whole packs, which every call makes for itself
/// unless it gets one; a causal call whose bias is learnt also keeps a byte per pair. Scores are
/// computed for one sequence at a time and are not kept; the gradient of a learnt bias has the size
/// of all scores, as PyTorch's has.
/// @param q  (batch * queries, heads * head_size); k and v (batch * keys, heads * head_size)
/// @returns (batch * queries, heads * head_size)
Value attend_with_bias(Tape& on, const BiasedShape& call, const Value& q, const Value& k,
                       const Value& v, const Value& bias);

}  // namespace dstune::nn
