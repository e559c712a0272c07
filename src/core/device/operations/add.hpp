// The sum of two tensors.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// inout += other, same dtype and length.
struct Add {
  Tensor inout;
  Tensor other;
};

inline Work work_of(const Add& op) {
  return {"add", count(op.inout), {op.inout, op.other}, {op.inout}};
}

}  // namespace dstune
