// Sums of two tensors.
#pragma once

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

}  // namespace dstune
