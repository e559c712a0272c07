// Rows with weights, and the sum of every k of them.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out(i, :) = factors(i) * in(i, :); any floating-point types.
struct ScaleRows {
  Matrix in;       ///< (S, h)
  Tensor factors;  ///< (S)
  Matrix out;
};

/// out(i) = the sum of a(i, :) * b(i, :); any floating-point types. The products go through memory,
/// as in PyTorch.
struct RowDots {
  Matrix a;         ///< (S, h)
  Matrix b;         ///< (S, h)
  Tensor products;  ///< (S h), of either's type: undefined afterwards
  Tensor out;       ///< (S)
};

/// out(i, :) = the sum of in's rows i k to i k + k, rounded once; any floating-point types.
struct SumGroups {
  Matrix in;   ///< (M k, h)
  Matrix out;  ///< (M, h)
};

/// out's rows i k to i k + k = in(i, :), of one type.
struct RepeatRows {
  Matrix in;   ///< (M, h)
  Matrix out;  ///< (M k, h)
};

inline Work work_of(const ScaleRows& op) {
  return {"scale_rows", count(op.in), {op.in, op.factors}, {op.out}};
}
inline Work work_of(const RowDots& op) {
  return {"row_dots", 2 * count(op.a), {op.a, op.b, op.products}, {op.products, op.out}};
}
inline Work work_of(const SumGroups& op) { return {"sum_groups", count(op.in), {op.in}, {op.out}}; }
inline Work work_of(const RepeatRows& op) { return {"repeat_rows", 0, {op.in}, {op.out}}; }

}  // namespace dstune
