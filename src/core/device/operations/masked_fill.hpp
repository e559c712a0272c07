// Scores that a mask takes out, as torch.masked_fill() does.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out[b, h, i, j] = in[b, h, i, j] where mask[b, i, j] is 0; elsewhere 0, or the lowest number of
/// its type.
struct FillMasked {
  AttentionShape shape;
  Tensor in;    ///< (batch, heads, sequence, sequence)
  Tensor mask;  ///< int8 (batch, sequence, sequence)
  bool with_lowest = true;
  Tensor out;
};

inline Work work_of(const FillMasked& op) { return {"fill_masked", 0, {op.in, op.mask}, {op.out}}; }

}  // namespace dstune
