// Rows of matrices that are copied, weighted and added up, and windows of rows.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out = in, of any type that both have. All rows of `in` may be the same one, with the stride 0.
struct CopyRows {
  Matrix in;
  Matrix out;
};

/// sum += factor * the sum of values
struct AddSum {
  Tensor values;  ///< fp32
  double factor = 1;
  Tensor sum;  ///< fp32, one element
};

inline Work work_of(const CopyRows& op) { return {"copy_rows", 0, {op.in}, {op.out}}; }
inline Work work_of(const AddSum& op) {
  return {"add_sum", count(op.values), {op.values, number(op.sum)}, {number(op.sum)}};
}

/// out(i, :) = factors(i) * in(i, :), of any floating-point types.
struct ScaleRows {
  Matrix in;       ///< (S, h)
  Tensor factors;  ///< (S)
  Matrix out;
};

/// out(i) = the sum of a(i, :) * b(i, :), of any floating-point types. The products go through
/// memory, as in PyTorch.
struct RowDots {
  Matrix a;         ///< (S, h)
  Matrix b;         ///< (S, h)
  Tensor products;  ///< (S h), of the type of a or b: undefined afterwards
  Tensor out;       ///< (S)
};

/// out(i, :) = the sum of in's rows i k to i k + k, rounded once; of any floating-point types.
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

/// The windows that a convolution along sequences sees, as the operand of a product: out(t, c k +
/// i) = in(t + i - k / 2, c), or 0 where that is outside of t's sequence, with k = out.cols /
/// in.cols. These rows times the weights (h_out, h k) of torch.nn.Conv1d are its result.
struct Unfold {
  Matrix in;                  ///< (M, h)
  std::int64_t sequence = 0;  ///< rows of each sequence; divides M
  Matrix out;                 ///< (M, h k), k odd
};

/// out(t, c) = the sum of all elements of `in` that Unfold would have made of out(t, c), rounded
/// once.
struct Fold {
  Matrix in;                  ///< (M, h k), k odd
  std::int64_t sequence = 0;  ///< rows of each sequence; divides M
  Matrix out;                 ///< (M, h)
};

inline Work work_of(const Unfold& op) { return {"unfold", 0, {op.in}, {op.out}}; }
inline Work work_of(const Fold& op) { return {"fold", count(op.in), {op.in}, {op.out}}; }

}  // namespace dstune
