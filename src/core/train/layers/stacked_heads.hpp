// Heads one below the other, and products of all of them at once, as eager attention has them.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Matrices equally far apart: the first, and where the next begins.
struct Stack {
  Matrix first;
  std::int64_t step = 0;
};

/// The matrices (rows, columns) of which `buffer` consists, in the model dtype.
Stack stack_of(const Workspace& work, const Buffer& buffer, std::int64_t rows,
               std::int64_t columns);

/// torch.bmm: c = op(a) op(b) for each of `count`.
void multiply(const Workspace& work, std::int64_t count, const Stack& a, Transpose transpose_a,
              const Stack& b, Transpose transpose_b, const Stack& c);

/// A stack of all heads: (batch * heads * sequence, head_size)
Buffer new_stack(const Workspace& work, const AttentionShape& shape);
/// Its heads (sequence, head_size)
inline Stack heads_of(const Workspace& work, const AttentionShape& shape, const Buffer& stack) {
  return stack_of(work, stack, shape.sequence, shape.head_size);
}
/// The heads of a single sequence as they lie.
inline Stack heads_of(const AttentionShape& shape, const Heads& heads) {
  const Matrix& all = heads.matrix;
  return {{all.data, shape.sequence, shape.head_size, all.dtype, all.stride}, heads.stride};
}
/// A new stack, in which each of the `heads` of `in` stands as often as it serves.
Buffer stacked(const Workspace& work, const AttentionShape& shape, const Heads& in,
               std::int64_t heads);
/// The reverse: sums over what each of the `heads` of `out` served.
void spread(const Workspace& work, const AttentionShape& shape, const Buffer& in, const Heads& out,
            std::int64_t heads);

/// The scores of all heads: (batch * heads * sequence, sequence)
Buffer new_scores(const Workspace& work, const AttentionShape& shape, DType dtype);
/// Those of each head (sequence, sequence), in the model dtype.
inline Stack scores_of(const Workspace& work, const AttentionShape& shape, const Buffer& scores) {
  return stack_of(work, scores, shape.sequence, shape.sequence);
}
/// All rows, as a softmax takes them.
inline Matrix score_rows(const AttentionShape& shape, const Buffer& scores, DType dtype) {
  return as_matrix(scores.tensor(dtype), shape.rows() * shape.heads, shape.sequence);
}

/// `in` times `factor`: a new tensor, in the model dtype, and frees the old one.
Buffer scaled(const Workspace& work, Buffer in, double factor);

}  // namespace dstune::layers
