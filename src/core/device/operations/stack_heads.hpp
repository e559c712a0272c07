// Heads one below the other, as products of one head after the other take them.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out = the heads of each sequence, each of them shape.heads / heads times: row b * shape.heads *
/// sequence + h * sequence + i of out is row i of head h / (shape.heads / heads) of sequence b.
struct StackHeads {
  AttentionShape shape;
  Heads in;
  std::int64_t heads = 0;  ///< of `in`; divides shape.heads
  Matrix out;              ///< (batch * shape.heads * sequence, head_size)
};

/// The reverse: out's heads are sums of those that StackHeads would have made of each.
struct SpreadHeads {
  AttentionShape shape;
  Matrix in;
  Heads out;
  std::int64_t heads = 0;  ///< of `out`
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

}  // namespace dstune
