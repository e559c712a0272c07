// A tensor times a number.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// inout *= factor
struct Scale {
  Tensor inout;
  double factor = 1;
};

/// out = in * factor, of one dtype.
struct ScaleTo {
  Tensor in;
  double factor = 1;
  Tensor out;
};

/// inout *= factor, a number on the device.
struct ScaleBy {
  Tensor inout;
  Tensor factor;  ///< fp32, one element
};

inline Work work_of(const Scale& op) { return {"scale", count(op.inout), {op.inout}, {op.inout}}; }
inline Work work_of(const ScaleTo& op) { return {"scale_to", count(op.in), {op.in}, {op.out}}; }
inline Work work_of(const ScaleBy& op) {
  return {"scale_by", count(op.inout), {op.inout, number(op.factor)}, {op.inout}};
}

}  // namespace dstune
