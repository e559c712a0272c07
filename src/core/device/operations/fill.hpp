// Memory that gets one value.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out = 0, any dtype.
struct FillZero {
  Tensor out;
};

/// out = value
struct FillConstant {
  Tensor out;
  double value = 0;
};

inline Work work_of(const FillZero& op) { return {"fill_zero", 0, {}, {op.out}}; }
inline Work work_of(const FillConstant& op) { return {"fill_constant", 0, {}, {op.out}}; }

}  // namespace dstune
