// Large numbers in place of infinite ones, as T5 has them in half precision.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The largest number of fp16 less 1000, rounded to fp16: what T5Block clamps to if something is
/// infinite.
inline constexpr float kLargestBesideInfinite = 64512;

/// out = in, but if `flag` is set at most kLargestBesideInfinite either way.
struct Clamp {
  Tensor in;
  Tensor flag;  ///< int8, one element
  Tensor out;
};

/// d_in = d_out where `in` was not clamped, else 0.
struct ClampBackward {
  Tensor d_out;
  Tensor in;
  Tensor flag;
  Tensor d_in;  ///< may be d_out
};

inline Work work_of(const Clamp& op) {
  return {"clamp", count(op.in), {op.in, number(op.flag)}, {op.out}};
}
inline Work work_of(const ClampBackward& op) {
  return {"clamp_backward", count(op.in), {op.d_out, op.in, number(op.flag)}, {op.d_in}};
}

}  // namespace dstune
