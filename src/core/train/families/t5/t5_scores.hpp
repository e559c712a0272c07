// T5's attention between its projections, where queries and keys may be of two sequences.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/position_bias.hpp"
#include "core/train/families/t5/t5_position_bias.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

/// One call of it.
struct Call {
  const layers::Workspace& queries;
  const layers::Workspace& keys;
  std::int64_t heads;
  std::int64_t head_size;
  double dropout;
  std::uint64_t seed;  ///< backward must be given the forward's

  std::int64_t width() const { return heads * head_size; }
  ScoreShape scores() const {
    return {queries.micro_batch, heads, queries.sequence_length, keys.sequence_length};
  }
  /// Of heads that lie in rows of this side.
  AttentionShape side(const layers::Workspace& work) const {
    return {.batch = work.micro_batch,
            .sequence = work.sequence_length,
            .heads = heads,
            .kv_heads = heads,
            .head_size = head_size};
  }
  Matrix matrix(const layers::Workspace& work, const Buffer& rows) const {
    return work.matrix(rows, width());
  }
};

/// Matrices equally far apart: the first, and where the next begins.
struct Matrices {
  Matrix first;
  std::int64_t step = 0;
};

/// The heads of sequence `index` as they lie side by side in rows.
Matrices heads_of_sequence(const Call& call, const layers::Workspace& work, const Buffer& rows,
                           std::int64_t index);

/// `count` products, c = op(a) op(b).
void multiply(Device& device, const Matrices& a, Transpose transpose_a, const Matrices& b,
              Transpose transpose_b, const Matrices& c, std::int64_t count);

/// Gradients by q, k and v, each in rows as they came in.
struct Gradients {
  Buffer q;
  Buffer k;
  Buffer v;
};

}  // namespace dstune::t5
