// A tensor's values in another place, or in another type.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out = in, same dtype and length.
struct Copy {
  Tensor in;
  Tensor out;
};

/// out = in, same length, any floating-point dtypes; rounded to nearest even.
struct Cast {
  Tensor in;
  Tensor out;
};

inline Work work_of(const Copy& op) { return {"copy", 0, {op.in}, {op.out}}; }
inline Work work_of(const Cast& op) { return {"cast", 0, {op.in}, {op.out}}; }

}  // namespace dstune
