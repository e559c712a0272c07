// Relative positions of queries and keys, as T5 and DeBERTa have them.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out(i, j) = b(i - j), as in DeBERTa's make_log_bucket_position(): b(d) = d up to the middle m =
/// buckets / 2, and beyond it sign(d) (ceil(log(|d| / m) / log((most - 1) / m) (m - 1)) + m), in
/// fp32. Without buckets b(d) = d.
struct FillDistances {
  std::int64_t sequence = 0;
  std::int64_t buckets = 0;  ///< 0: none
  std::int64_t most = 0;  ///< largest distance of the formula; b goes on in the same way beyond it
  Tensor out;             ///< int64 (sequence, sequence)
};

/// out = sign * in + span, clamped to [0, 2 span).
struct ShiftDistances {
  Tensor in;  ///< int64
  std::int64_t sign = 1;
  std::int64_t span = 0;
  Tensor out;  ///< int64, as many as in
};

inline Work work_of(const FillDistances& op) { return {"fill_distances", 0, {}, {op.out}}; }
inline Work work_of(const ShiftDistances& op) { return {"shift_distances", 0, {op.in}, {op.out}}; }

/// The scores of a batch: (batch, heads, queries, keys), one after the other.
struct ScoreShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;

  std::int64_t square() const { return queries * keys; }    ///< scores of one head
  std::int64_t of_one() const { return heads * square(); }  ///< scores of one sequence
  std::int64_t count() const { return batch * of_one(); }
};

/// out[i, j] = T5Attention._relative_position_bucket(j - i): near keys have buckets of their own,
/// and farther keys share them, the more of them the farther they are; without `bidirectional` all
/// keys ahead share one.
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
  ScoreShape shape;  ///< of any batch size
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

/// d_bias[i, j, h] = the sum over b of d_scores[b, h, i, j], plus what is there already if `adds`.
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

/// out(n s + i, j) = in(n s + i, index(i, j)) for every n: torch.gather() along columns by an index
/// that is the same for every n.
struct GatherColumns {
  Matrix in;     ///< (n s, w)
  Tensor index;  ///< int64 (s, columns of out), each below w
  Matrix out;    ///< (n s, any)
};

/// d_in(n s + i, c) = the sum of d_out(n s + i, j) over the j with index(i, j) = c; 0 where there
/// is no such j. Equal indices of a row must lie side by side. Sums are rounded once.
struct GatherColumnsBackward {
  Matrix d_out;             ///< dense
  bool transposed = false;  ///< d_out(n s + j, i) is read for d_out(n s + i, j)
  Tensor index;             ///< (s, s) if transposed
  Matrix d_in;              ///< dense
};

/// inout(n, i, j) += other(n, j, i) for every n.
struct AddTransposed {
  Tensor inout;  ///< (any, size, size)
  Tensor other;
  std::int64_t size = 0;
};

inline Work work_of(const GatherColumns& op) {
  return {"gather_columns", 0, {Operand(op.in).of(op.out.size()), op.index}, {op.out}};
}
// PyTorch fills with zeros, then adds in place.
inline Work work_of(const GatherColumnsBackward& op) {
  const Operand added = Operand(op.d_in).of(op.d_out.size());
  return {
      "gather_columns_backward", count(op.d_out), {op.d_out, op.index, added}, {op.d_in, added}};
}
inline Work work_of(const AddTransposed& op) {
  return {"add_transposed", count(op.inout), {op.inout, op.other}, {op.inout}};
}

}  // namespace dstune
