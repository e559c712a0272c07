// Matrix products.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

enum class Transpose { no, yes };

/// C = op(A) op(B) + beta C + bias, where op transposes or does nothing, and every row of C gets
/// the bias, if there is one. Shapes after transposition must agree: (M, K) (K, N) -> (M, N). One
/// dtype; C is rounded once.
struct Gemm {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  Matrix a;
  Matrix b;
  double beta = 0;  ///< 0 or 1
  Matrix c;
  std::optional<Tensor> bias = std::nullopt;  ///< (N)
};

// Every product is one multiplication and one addition. The bias is added on the way out: no pass
// over C of its own.
inline Work work_of(const Gemm& op) {
  const std::int64_t inner = op.transpose_a == Transpose::no ? op.a.cols : op.a.rows;
  Work work{"gemm", 2 * count(op.c) * static_cast<double>(inner), {op.a, op.b}, {op.c}};
  if (op.beta != 0) work.reads.add(op.c);
  if (op.bias) {
    work.flops += count(op.c);
    work.reads.add(*op.bias);
  }
  return work;
}

}  // namespace dstune
