// Rows of tables, looked up.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out(i, :) = wte[tokens[i], :] + wpe[i % sequence, :]
struct Embedding {
  Tensor tokens;  ///< int64 (M)
  std::int64_t sequence = 0;
  Matrix wte;
  Matrix wpe;
  Matrix out;  ///< (M, h)
};

/// d_wte[tokens[i], :] += d_out(i, :); d_wpe likewise by position. Both are added to: zero first.
struct EmbeddingBackward {
  Matrix d_out;   ///< (M, h)
  Tensor tokens;  ///< int64 (M)
  std::int64_t sequence = 0;
  Matrix d_wte;
  Matrix d_wpe;
};

// Only the rows that are looked up are read.
inline Work work_of(const Embedding& op) {
  const Bytes rows = op.out.size();
  return {"embedding",
          count(op.out),
          {op.tokens, Operand(op.wte).of(rows), Operand(op.wpe).of(rows)},
          {op.out}};
}
inline Work work_of(const EmbeddingBackward& op) {
  const Operand d_tokens = Operand(op.d_wte).of(op.d_out.size());
  const Operand d_places = Operand(op.d_wpe).of(op.d_out.size());
  return {"embedding_backward",
          2 * count(op.d_out),
          {op.tokens, op.d_out, d_tokens, d_places},
          {d_tokens, d_places}};
}

}  // namespace dstune
