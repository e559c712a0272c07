// Matrix products.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

enum class Transpose { no, yes };

/// So many products: each reads and writes where the last one did, so many elements further on.
struct Batch {
  std::int64_t count = 1;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  std::int64_t c_step = 0;
};

/// C = op(A) op(B) + beta C + bias, where op transposes or does nothing, and every row of C gets
/// the bias, if there is one. Shapes after transposition must agree: (M, K) (K, N) -> (M, N). One
/// dtype, but C may be fp32 beside 16-bit A and B, then without a bias; C is rounded once.
struct Gemm {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  Matrix a;
  Matrix b;
  double beta = 0;  ///< 0 or 1
  Matrix c;
  std::optional<Tensor> bias = std::nullopt;  ///< (N)
  Batch batch = {};  ///< a, b and c are of the first; all get the same bias
};

/// The bytes of a matrix of all products that move.
inline Operand batch_operand(const Matrix& first, const Batch& batch, std::int64_t step) {
  Operand all(first);
  all.extent += static_cast<Bytes>((batch.count - 1) * step) * size_of(first.dtype);
  all.bytes *= static_cast<Bytes>(batch.count);
  return all;
}

// Every product is one multiplication and one addition. The bias is added on the way out: no pass
// over C of its own.
inline Work work_of(const Gemm& op) {
  const std::int64_t inner = op.transpose_a == Transpose::no ? op.a.cols : op.a.rows;
  const double results = count(op.c) * static_cast<double>(op.batch.count);
  const Operand c = batch_operand(op.c, op.batch, op.batch.c_step);
  Work work{"gemm",
            2 * results * static_cast<double>(inner),
            {batch_operand(op.a, op.batch, op.batch.a_step),
             batch_operand(op.b, op.batch, op.batch.b_step)},
            {c}};
  if (op.beta != 0) work.reads.add(c);
  if (op.bias) {
    work.flops += results;
    work.reads.add(*op.bias);
  }
  return work;
}

/// Group g is the rows from ends[g - 1], or 0, to ends[g]; all of one dtype.
struct RowGroups {
  Tensor ends;  ///< int8 (4 count), which are `count` int32, ascending
  std::int64_t count;
};

/// c's rows of group g = a's rows of it times op(b_g).
struct GroupedGemm {
  Transpose transpose_b = Transpose::no;
  RowGroups groups;
  Matrix a;  ///< (S, K)
  Matrix b;  ///< all b_g, one below the other, dense: (count K, N), transposed (count N, K)
  Matrix c;  ///< (S, N)
};

/// c_g = transposed(a's rows of group g) times b's rows of it; 0 where there are none.
struct GroupedGemmByRows {
  RowGroups groups;
  Matrix a;  ///< (S, M)
  Matrix b;  ///< (S, N)
  Matrix c;  ///< all c_g, one below the other, dense: (count M, N)
};

// How many rows a group has is not known before: all matrices move.
inline Work work_of(const GroupedGemm& op) {
  return {"gemm", 2 * count(op.c) * static_cast<double>(op.a.cols), {op.a, op.b}, {op.c}};
}
inline Work work_of(const GroupedGemmByRows& op) {
  return {"gemm", 2 * count(op.a) * static_cast<double>(op.b.cols), {op.a, op.b}, {op.c}};
}

}  // namespace dstune
