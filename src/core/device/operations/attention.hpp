// Attention: scores, masks, heads, and dropout of probabilities.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/random_bits.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Heads that lie side by side in the M rows of a matrix; column 0 of the first head is that of the
/// matrix.
struct Heads {
  Matrix matrix;
  std::int64_t stride = 0;  ///< columns from the start of one head to the next, >= head_size
};

/// `count` heads, of which the first begins at `first_column` of `matrix`.
/// @param stride  0: the heads touch
inline Heads heads_in(const Matrix& matrix, std::int64_t first_column, std::int64_t count,
                      std::int64_t head_size, std::int64_t stride = 0) {
  const std::int64_t apart = stride == 0 ? head_size : stride;
  auto* const data = static_cast<std::byte*>(matrix.data) +
                     first_column * static_cast<std::int64_t>(size_of(matrix.dtype));
  return {{data, matrix.rows, (count - 1) * apart + head_size, matrix.dtype, matrix.stride}, apart};
}

/// The dimensions of one attention call. Query i sees key j if i - window < j <= i; without causal
/// it also sees the keys behind it, with j < i + window.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;     ///< the heads of q and out
  std::int64_t kv_heads = 0;  ///< of k and v; divides heads; each serves heads / kv_heads in a row
  std::int64_t head_size = 0;
  bool causal = true;
  std::int64_t window = 0;  ///< keys that a query sees back, itself included; 0: all
  double scale = 0;         ///< factor of the scores; 0: 1 / sqrt(head_size)
  double softcap = 0;       ///< c: a scaled score becomes c tanh(score / c); 0: it does not
  double dropout = 0;       ///< probability; the mask comes from the seed and is never stored
  std::uint64_t seed = 0;   ///< backward must be given that of the forward

  double score_scale() const {
    return scale == 0 ? 1 / std::sqrt(static_cast<double>(head_size)) : scale;
  }
  /// Query i sees the keys [i - back(), i + ahead()], as far as they exist.
  std::int64_t back() const { return window == 0 ? sequence - 1 : std::min(window, sequence) - 1; }
  std::int64_t ahead() const { return causal ? 0 : back(); }
  std::int64_t rows() const { return batch * sequence; }
};

/// Scaled dot product attention (Dao et al. 2022): for each head O = dropout(softmax(cap(scale Q
/// K^T))) V over what a query sees, without storing the scores. q and out have `heads` heads, k and
/// v `kv_heads`.
struct Attention {
  AttentionShape shape;
  Heads q;
  Heads k;
  Heads v;
  Tensor lse;        ///< written: fp32 (batch * heads * sequence), log-sum-exp of the scores
  Tensor workspace;  ///< fp32, Device::attention_workspace() elements
  Matrix out;        ///< (M, heads * head_size)
};

/// The gradients of attention; those by a head of k and v are sums over the heads of q that it
/// serves.
struct AttentionBackward {
  AttentionShape shape;
  Matrix d_out;
  Heads q;
  Heads k;
  Heads v;
  Matrix out;
  Tensor lse;
  Tensor workspace;
  Heads d_q;
  Heads d_k;
  Heads d_v;
};

/// The FLOPs of the two products; scores that no query sees are never computed. With w as the
/// window, or the sequence s if there is none, each head has s w - w^2 / 2 scores, without causal
/// twice as many.
inline double attention_flops(const AttentionShape& shape) {
  const auto sequence = static_cast<double>(shape.sequence);
  const double window = static_cast<double>(shape.back() + 1);
  const double scores = (sequence * window - window * window / 2) * (shape.causal ? 1 : 2);
  return 4 * static_cast<double>(shape.batch) * static_cast<double>(shape.heads) * scores *
         static_cast<double>(shape.head_size);
}

/// The bytes of `count` heads, without what lies between them.
inline Operand operand_of(const Heads& heads, std::int64_t count, std::int64_t head_size) {
  return Operand(heads.matrix)
      .of(static_cast<Bytes>(heads.matrix.rows * count * head_size) * size_of(heads.matrix.dtype));
}

inline Work work_of(const Attention& op) {
  const AttentionShape& shape = op.shape;
  return {"attention",
          attention_flops(shape),
          {operand_of(op.q, shape.heads, shape.head_size),
           operand_of(op.k, shape.kv_heads, shape.head_size),
           operand_of(op.v, shape.kv_heads, shape.head_size)},
          {op.lse, op.out}};
}
// Backward recomputes the scores: five products of the size of forward's two.
inline Work work_of(const AttentionBackward& op) {
  const AttentionShape& shape = op.shape;
  return {"attention_backward",
          2.5 * attention_flops(shape),
          {op.d_out, operand_of(op.q, shape.heads, shape.head_size),
           operand_of(op.k, shape.kv_heads, shape.head_size),
           operand_of(op.v, shape.kv_heads, shape.head_size), op.out, op.lse},
          {operand_of(op.d_q, shape.heads, shape.head_size),
           operand_of(op.d_k, shape.kv_heads, shape.head_size),
           operand_of(op.d_v, shape.kv_heads, shape.head_size)}};
}

/// The mask that eager attention adds: mask[b, i, j] = 0 where query i sees key j, else the lowest
/// number of its type.
struct FillMask {
  AttentionShape shape;
  Tensor mask;  ///< (batch, sequence, sequence)
};

/// out[b, h, i, j] = scores[b, h, i, j] + mask[b, i, j]
struct AddMask {
  AttentionShape shape;
  Tensor scores;  ///< (batch, heads, sequence, sequence)
  Tensor mask;
  Tensor out;  ///< may be scores
};

inline Work work_of(const FillMask& op) { return {"fill_mask", 0, {}, {op.mask}}; }
inline Work work_of(const AddMask& op) {
  return {"add_mask", count(op.scores), {op.scores, op.mask}, {op.out}};
}

/// out = the heads of each sequence, each of them shape.heads / heads times: row b * shape.heads *
/// sequence + h * sequence + i of out is row i of head h / (shape.heads / heads) of sequence b.
struct StackHeads {
  AttentionShape shape;
  Heads in;
  std::int64_t heads = 0;  ///< the heads of `in`; divides shape.heads
  Matrix out;              ///< (batch * shape.heads * sequence, head_size)
};

/// The inverse of StackHeads: each head of out is the sum of those that StackHeads would have made
/// of it.
struct SpreadHeads {
  AttentionShape shape;
  Matrix in;
  Heads out;
  std::int64_t heads = 0;  ///< the heads of `out`
};

inline Work work_of(const StackHeads& op) {
  return {"stack_heads", 0, {operand_of(op.in, op.heads, op.shape.head_size)}, {op.out}};
}
inline Work work_of(const SpreadHeads& op) {
  return {"spread_heads",
          op.heads == op.shape.heads ? 0 : count(op.in),
          {op.in},
          {operand_of(op.out, op.heads, op.shape.head_size)}};
}

/// RoPE (Su et al. 2021), as Hugging Face's apply_rotary_pos_emb: it turns the first r columns of
/// each head, whose halves are a and b. out = (a cos - b sin, b cos + a sin) with the angles of the
/// position; the other columns are copied. The inverse turns the other way, for backward.
struct Rotate {
  Matrix in;  ///< (M, heads * in_stride): heads side by side
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t in_stride = 0;  ///< columns from head to head of `in`, >= head_size
  Matrix cos;                  ///< (s, r / 2), in the model's type; M is a multiple of s
  Matrix sin;                  ///< (s, r / 2)
  bool inverse = false;
  Tensor scratch;  ///< rotate_scratch() elements of out's type
  Matrix out;      ///< (M, heads * head_size), dense; not `in`
};

/// The most elements that PyTorch's chain of kernels holds at a time, beside `in` and `out`.
constexpr std::int64_t rotate_scratch(std::int64_t elements) { return 2 * elements; }

// Forward multiplies by cos, negates a half, joins the halves, multiplies by sin, and adds.
// Backward multiplies by cos and by sin, negates a half, makes of each half a full tensor with
// zeros, and adds these.
inline Work work_of(const Rotate& op) {
  const Operand out = op.out;
  const Operand in = Operand(op.in).of(out.bytes);
  const Operand half = in.of(out.bytes / 2);
  const Operand scratch = Operand(op.scratch).of(out.bytes);
  Work work{"rotate", 3 * count(op.out), {in, op.cos, in, op.sin}, {out, scratch}};
  if (op.inverse) {
    work.reads.add({half, half, half, out, scratch, out, scratch});
    work.writes.add({half, scratch, half, scratch, half, out, out});
  } else {
    work.reads.add({half, scratch, scratch, out});
    work.writes.add({half, scratch, out});
  }
  return work;
}

/// Which of attention's probabilities are dropped, the same in every backend. In every 16 x 16 tile
/// of a head's scores, those whose queries and keys differ by 0 or 8 are a group: one thread has
/// all of them when matrix instructions made the scores, and also when they made the transposed
/// ones. Sixteen bits of a group's hash decide for each score.
struct ScoreGroups {
  static constexpr std::uint64_t kTile = 16;
  static constexpr std::uint64_t kHalf = kTile / 2;

  /// @param sequence  the number of queries, and of keys, of the head
  constexpr explicit ScoreGroups(std::int64_t sequence)
      : per_row((static_cast<std::uint64_t>(sequence) + kTile - 1) / kTile * kHalf) {}

  /// The index of the group of (query, key). The index of (query, key + 1) is larger by 1 if both
  /// keys are in the same 8, and that of (query + 1, key) is larger by per_row if both queries are.
  constexpr std::uint64_t index(std::int64_t query, std::int64_t key) const {
    return half_of(query) * per_row + half_of(key);
  }

  static constexpr std::uint64_t half_of(std::int64_t row) {
    const auto place = static_cast<std::uint64_t>(row);
    return place / kTile * kHalf + place % kHalf;
  }

  std::uint64_t per_row;
};

/// The place of a score in its group, 0 .. 3.
constexpr unsigned score_place(std::int64_t query, std::int64_t key) {
  const auto row = static_cast<std::uint64_t>(query);
  const auto column = static_cast<std::uint64_t>(key);
  return static_cast<unsigned>(row / ScoreGroups::kHalf % 2 * 2 + column / ScoreGroups::kHalf % 2);
}

/// The threshold of is_score_kept(): a number of 16 bits is kept if it is not below it.
inline std::uint32_t score_threshold(double probability) {
  return static_cast<std::uint32_t>(std::lround(probability * 65536.0));
}

/// @param bits  random_bits() of the head's key and of the group's index
constexpr bool is_score_kept(std::uint64_t bits, unsigned place, std::uint32_t threshold) {
  return (static_cast<std::uint32_t>(bits >> (16U * place)) & 0xffffU) >= threshold;
}

}  // namespace dstune
