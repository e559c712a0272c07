// Biases of scores by relative position, as T5 has them.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Scores of a batch: (batch, heads, queries, keys), one after the other.
struct ScoreShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;

  std::int64_t square() const { return queries * keys; }    ///< of one head
  std::int64_t of_one() const { return heads * square(); }  ///< scores of a sequence
  std::int64_t count() const { return batch * of_one(); }
};

/// out[i, j] = T5Attention._relative_position_bucket(j - i): nearer keys have buckets of their own,
/// farther ones share them, the farther the more; without `bidirectional` keys ahead share one.
struct PositionBuckets {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  bool bidirectional = true;
  std::int64_t buckets = 32;        ///< 4 or more
  std::int64_t max_distance = 128;  ///< more than half of the buckets
  Tensor out;                       ///< int64 (queries * keys)
};

/// out[h, i, j] = bias[i, j, h], or the lowest number of its type where `causal` hides key j.
struct StackBias {
  ScoreShape shape;  ///< of any batch
  Tensor bias;       ///< (queries, keys, heads)
  bool causal = false;
  Tensor out;  ///< (heads, queries, keys)
};

/// out[b, h, i, j] = scores[b, h, i, j] + bias
struct AddScoreBias {
  ScoreShape shape;
  Tensor scores;
  Tensor bias;
  bool stacked = false;  ///< bias is (heads, queries, keys), else (queries, keys, heads)
  Tensor out;            ///< may be scores
};

/// d_bias[i, j, h] = the sum over b of d_scores[b, h, i, j], beside what is there if it `adds`.
struct ScoreBiasGradient {
  ScoreShape shape;
  Tensor d_scores;
  bool adds = false;
  Tensor d_bias;  ///< (queries, keys, heads)
};

inline Work work_of(const PositionBuckets& op) { return {"position_buckets", 0, {}, {op.out}}; }
inline Work work_of(const StackBias& op) { return {"stack_bias", 0, {op.bias}, {op.out}}; }
inline Work work_of(const AddScoreBias& op) {
  return {"add_score_bias", count(op.scores), {op.scores, op.bias}, {op.out}};
}
inline Work work_of(const ScoreBiasGradient& op) {
  Work work{"score_bias_gradient", count(op.d_scores), {op.d_scores}, {op.d_bias}};
  if (op.adds) work.reads.add(op.d_bias);
  return work;
}

}  // namespace dstune
