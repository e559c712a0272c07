// Matrix products.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

enum class Transpose { no, yes };

/// `count` products: each reads and writes as many elements further on as its steps say.
struct Batch {
  std::int64_t count = 1;
  std::int64_t a_step = 0;
  std::int64_t b_step = 0;
  std::int64_t c_step = 0;
};

/// C = op(A) op(B) + beta C + bias, where op transposes or does nothing, and the bias, if there is
/// one, is added to every row of C. Shapes after transposition must agree: (M, K) (K, N) -> (M, N).
/// All have one dtype, except that C may be fp32 beside 16-bit A and B, and has no bias then. C is
/// rounded once, unless a library splits a long sum or adds a bias to what C held.
struct Gemm {
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  Matrix a;
  Matrix b;
  double beta = 0;  ///< 0 or 1
  Matrix c;
  std::optional<Tensor> bias = std::nullopt;  ///< (N)
  Batch batch = {};  ///< a, b and c belong to the first product; all get the same bias
};

/// The bytes that all products of a batch read or write of one matrix.
inline Operand batch_operand(const Matrix& first, const Batch& batch, std::int64_t step) {
  Operand all(first);
  all.extent += static_cast<Bytes>((batch.count - 1) * step) * size_of(first.dtype);
  all.bytes *= static_cast<Bytes>(batch.count);
  return all;
}

// Every product takes one multiplication and one addition. The bias is added in the epilogue,
// without a pass of its own over C.
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

/// Group g has the rows from ends[g - 1], or 0, to ends[g]; all rows have one dtype.
struct RowGroups {
  Tensor ends;  ///< int8 (4 count), which are `count` int32, ascending
  std::int64_t count;
};

/// c's rows of group g = a's rows of group g times op(b_g).
struct GroupedGemm {
  Transpose transpose_b = Transpose::no;
  RowGroups groups;
  Matrix a;  ///< (S, K)
  Matrix b;  ///< all b_g, one below the other, dense: (count K, N), or transposed (count N, K)
  Matrix c;  ///< (S, N)
};

/// c_g = transposed(a's rows of group g) times b's rows of group g; 0 where the group has no rows.
struct GroupedGemmByRows {
  RowGroups groups;
  Matrix a;  ///< (S, M)
  Matrix b;  ///< (S, N)
  Matrix c;  ///< all c_g, one below the other, dense: (count M, N)
};

// The number of rows of a group is not known in advance: all matrices are counted.
inline Work work_of(const GroupedGemm& op) {
  return {"gemm", 2 * count(op.c) * static_cast<double>(op.a.cols), {op.a, op.b}, {op.c}};
}
inline Work work_of(const GroupedGemmByRows& op) {
  return {"gemm", 2 * count(op.a) * static_cast<double>(op.b.cols), {op.a, op.b}, {op.c}};
}

}  // namespace dstune
