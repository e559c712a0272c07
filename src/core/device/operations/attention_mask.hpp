// A mask that is added to scores, as eager attention does.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// mask[b, i, j] = 0 where query i sees key j, else the lowest number of its type.
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

}  // namespace dstune
