// Rows of a table that are looked up, as torch.nn.Embedding does it.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out[i] = first + i % period: torch.arange, or the same for every sequence.
struct FillPositions {
  Tensor out;  ///< int64
  std::int64_t first = 0;
  std::int64_t period = 0;  ///< 0: the length of out
};

/// out(i, :) = table(tokens[i], :)
struct Embedding {
  Tensor tokens;  ///< int64 (M), each a row of the table
  Matrix table;
  Matrix out;  ///< (M, h)
};

/// d_table(tokens[i], :) += d_out(i, :), rounded once per row. d_table must be zeroed before.
struct EmbeddingBackward {
  Matrix d_out;   ///< (M, h)
  Tensor tokens;  ///< int64 (M)
  Matrix d_table;
};

inline Work work_of(const FillPositions& op) { return {"fill_positions", 0, {}, {op.out}}; }
// Only the rows that are looked up are read.
inline Work work_of(const Embedding& op) {
  return {"embedding", 0, {op.tokens, Operand(op.table).of(op.out.size())}, {op.out}};
}
inline Work work_of(const EmbeddingBackward& op) {
  const Operand rows = Operand(op.d_table).of(op.d_out.size());
  return {"embedding_backward", count(op.d_out), {op.tokens, op.d_out, rows}, {rows}};
}

/// out[i] = labels[i - 1] within a sequence, and `start` at its beginning: T5's _shift_right().
struct ShiftTokens {
  Tensor labels;              ///< int64, whole sequences
  std::int64_t sequence = 1;  ///< the length of one
  std::int64_t start = 0;     ///< decoder_start_token_id
  Tensor out;                 ///< int64, as many as labels
};

inline Work work_of(const ShiftTokens& op) { return {"shift_tokens", 0, {op.labels}, {op.out}}; }

}  // namespace dstune
