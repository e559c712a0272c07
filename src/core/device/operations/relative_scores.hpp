// Scores of queries by relative positions, spread over the keys.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out(n s + i, j) = in(n s + i, index(i, j)) for every n: torch.gather() along columns by an index
/// that all n share.
struct GatherColumns {
  Matrix in;     ///< (n s, w)
  Tensor index;  ///< int64 (s, columns of out), each below w
  Matrix out;    ///< (n s, any)
};

/// d_in(n s + i, c) = the sum of d_out(n s + i, j) over the j with index(i, j) = c; 0 where there
/// is none. Equal indices of a row must lie side by side. Sums are rounded once.
struct GatherColumnsBackward {
  Matrix d_out;             ///< dense
  bool transposed = false;  ///< d_out(n s + j, i) stands for d_out(n s + i, j)
  Tensor index;             ///< (s, s) if transposed
  Matrix d_in;              ///< dense
};

/// inout(n, i, j) += other(n, j, i) for every n.
struct AddTransposed {
  Tensor inout;  ///< (any, size, size)
  Tensor other;
  std::int64_t size = 0;
};

inline Work work_of(const GatherColumns& op) {
  return {"gather_columns", 0, {Operand(op.in).of(op.out.size()), op.index}, {op.out}};
}
// PyTorch fills with zeros, then adds in place.
inline Work work_of(const GatherColumnsBackward& op) {
  const Operand added = Operand(op.d_in).of(op.d_out.size());
  return {
      "gather_columns_backward", count(op.d_out), {op.d_out, op.index, added}, {op.d_in, added}};
}
inline Work work_of(const AddTransposed& op) {
  return {"add_transposed", count(op.inout), {op.inout, op.other}, {op.inout}};
}

}  // namespace dstune
