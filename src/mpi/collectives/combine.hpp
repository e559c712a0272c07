// Element-wise combination of two tensors in host memory.
#pragma once

#include "core/device/collectives.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// into[i] = op(into[i], other[i]), computed in fp32 and rounded once to the tensors' type. Both
/// have the same type and length. A NaN in either is a NaN in the result.
void combine(ReduceOp op, Tensor other, Tensor into);

}  // namespace dstune
