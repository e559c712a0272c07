// Matrix products.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

enum class Transpose { no, yes };

/// C = op(A) op(B) + beta C, where op transposes or does nothing. Shapes after transposition must
/// agree: (M, K) (K, N) -> (M, N). One dtype.
struct Gemm {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  Matrix a;
  Matrix b;
  double beta = 0;  ///< 0 or 1
  Matrix c;
};

// Every product is one multiplication and one addition.
inline Work work_of(const Gemm& op) {
  const std::int64_t inner = op.transpose_a == Transpose::no ? op.a.cols : op.a.rows;
  Work work{"gemm", 2 * count(op.c) * static_cast<double>(inner), {op.a, op.b}, {op.c}};
  if (op.beta != 0) work.reads.add(op.c);
  return work;
}

}  // namespace dstune
