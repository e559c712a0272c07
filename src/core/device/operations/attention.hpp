// Scaled dot product attention without the scores (Dao et al. 2022).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Heads side by side in the M rows of a matrix, whose first column is that of the first head.
struct Heads {
  Matrix matrix;
  std::int64_t stride = 0;  ///< columns between the starts of two, >= head_size
};

/// The first of them begins at `first_column` of `matrix`.
/// @param stride  0: they touch
inline Heads heads_in(const Matrix& matrix, std::int64_t first_column, std::int64_t count,
                      std::int64_t head_size, std::int64_t stride = 0) {
  const std::int64_t apart = stride == 0 ? head_size : stride;
  auto* const data = static_cast<std::byte*>(matrix.data) +
                     first_column * static_cast<std::int64_t>(size_of(matrix.dtype));
  return {{data, matrix.rows, (count - 1) * apart + head_size, matrix.dtype, matrix.stride}, apart};
}

/// Dimensions of one attention call. Query i sees key j if i - window < j <= i; without causal also
/// the keys behind it, with j < i + window.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;     ///< of q and out
  std::int64_t kv_heads = 0;  ///< of k and v; divides heads: each serves heads / kv_heads in a row
  std::int64_t head_size = 0;
  bool causal = true;
  std::int64_t window = 0;  ///< keys that a query sees back, itself included; 0: all
  double scale = 0;         ///< of the scores; 0: 1 / sqrt(head_size)
  double softcap = 0;       ///< c: scores become c tanh(score / c) after the scale; 0: they do not
  double dropout = 0;       ///< probability; the mask comes from the seed and is never stored
  std::uint64_t seed = 0;   ///< backward must be given the forward's

  double score_scale() const {
    return scale == 0 ? 1 / std::sqrt(static_cast<double>(head_size)) : scale;
  }
  /// Query i sees the keys [i - back(), i + ahead()] that there are.
  std::int64_t back() const { return window == 0 ? sequence - 1 : std::min(window, sequence) - 1; }
  std::int64_t ahead() const { return causal ? 0 : back(); }
  std::int64_t rows() const { return batch * sequence; }
};

/// For each head O = dropout(softmax(cap(scale Q K^T))) V over what a query sees, without storing
/// the scores. q and out have `heads` heads, k and v `kv_heads`.
struct Attention {
  AttentionShape shape;
  Heads q;
  Heads k;
  Heads v;
  Tensor lse;        ///< written: fp32 (batch * heads * sequence), log-sum-exp of the scores
  Tensor workspace;  ///< fp32, Device::attention_workspace() elements
  Matrix out;        ///< (M, heads * head_size)
};

/// The gradients of a k and v are the sums over the heads that they serve.
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

/// The FLOPs of the two products; scores that no query sees are never computed. With w the window,
/// or the sequence s: s w - w^2 / 2 scores of each head, without causal twice as many.
inline double attention_flops(const AttentionShape& shape) {
  const auto sequence = static_cast<double>(shape.sequence);
  const double window = static_cast<double>(shape.back() + 1);
  const double scores = (sequence * window - window * window / 2) * (shape.causal ? 1 : 2);
  return 4 * static_cast<double>(shape.batch) * static_cast<double>(shape.heads) * scores *
         static_cast<double>(shape.head_size);
}

/// The bytes of `count` heads that move: not what lies between them.
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

}  // namespace dstune
