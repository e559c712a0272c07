// Operations on each element of a tensor by itself.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// inout += other, same dtype and length.
struct Add {
  Tensor inout;
  Tensor other;
};

/// out(i, :) = a(i, :) + b(i % b.rows, :): b is the same for every sequence of a batch.
struct AddBroadcast {
  Matrix a;  ///< (M, h)
  Matrix b;  ///< (s, h), M a multiple of s
  Matrix out;
};

/// d_b(j, :) = the sum of the rows i of d_out with i % d_b.rows = j, rounded once.
struct AddBroadcastBackward {
  Matrix d_out;  ///< (M, h)
  Matrix d_b;    ///< (s, h)
};

inline Work work_of(const Add& op) {
  return {"add", count(op.inout), {op.inout, op.other}, {op.inout}};
}
inline Work work_of(const AddBroadcast& op) {
  return {"add_broadcast", count(op.out), {op.a, op.b}, {op.out}};
}
inline Work work_of(const AddBroadcastBackward& op) {
  return {"add_broadcast_backward", count(op.d_out), {op.d_out}, {op.d_b}};
}

/// inout(i, :) += bias
struct AddBias {
  Matrix inout;  ///< (M, n)
  Tensor bias;   ///< (n)
};

/// out = column sums of d_out
struct BiasGradient {
  Matrix d_out;  ///< (M, n)
  Tensor out;    ///< (n)
};

inline Work work_of(const AddBias& op) {
  return {"add_bias", count(op.inout), {op.inout, op.bias}, {op.inout}};
}
inline Work work_of(const BiasGradient& op) {
  return {"bias_gradient", count(op.d_out), {op.d_out}, {op.out}};
}

/// The largest number of fp16 less 1000, rounded to fp16. T5Block clamps to it if something is
/// infinite.
inline constexpr float kLargestBesideInfinite = 64512;

/// Clamps as T5 does in half precision: out = in, or if `flag` is set, at most
/// kLargestBesideInfinite in either direction.
struct Clamp {
  Tensor in;
  Tensor flag;  ///< uint8, one element
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

/// out = in, same dtype and length.
struct Copy {
  Tensor in;
  Tensor out;
};

/// out = in, of the same length and any floating-point dtypes; it is rounded to nearest even.
struct Cast {
  Tensor in;
  Tensor out;
};

inline Work work_of(const Copy& op) { return {"copy", 0, {op.in}, {op.out}}; }
inline Work work_of(const Cast& op) { return {"cast", 0, {op.in}, {op.out}}; }

/// out = 0, any dtype.
struct FillZero {
  Tensor out;
};

/// out = value, of a floating-point dtype or uint8
struct FillConstant {
  Tensor out;
  double value = 0;
};

inline Work work_of(const FillZero& op) { return {"fill_zero", 0, {}, {op.out}}; }
inline Work work_of(const FillConstant& op) { return {"fill_constant", 0, {}, {op.out}}; }

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
