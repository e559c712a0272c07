#include "kernels/cuda/gemm/product.hpp"

#include <bit>
#include <cassert>

namespace dstune::cuda {

namespace {

// PyTorch tells cuBLASLt no more than 256 bytes, for more is of no use.
std::uint32_t alignment_of(std::uintptr_t address) {
  constexpr std::uintptr_t kMost = 256;
  return std::uint32_t{1} << static_cast<unsigned>(std::countr_zero(address | kMost));
}

// Every matrix of a batch is aligned as the least of the first two.
ColumnMajorProduct::Operand operand_of(const Matrix& matrix, std::int64_t step) {
  const auto bytes = static_cast<std::uintptr_t>(step) * size_of(matrix.dtype);
  const auto first = reinterpret_cast<std::uintptr_t>(matrix.data);
  return {matrix.cols, matrix.rows, matrix.stride, alignment_of(first | bytes), step};
}

}  // namespace

ColumnMajorProduct product_of(const Gemm& op) {
  const bool transpose_a = op.transpose_a == Transpose::yes;
  const bool transpose_b = op.transpose_b == Transpose::yes;
  assert((transpose_a ? op.a.cols : op.a.rows) == op.c.rows);
  assert((transpose_b ? op.b.rows : op.b.cols) == op.c.cols);
  assert((transpose_a ? op.a.rows : op.a.cols) == (transpose_b ? op.b.cols : op.b.rows));
  return {.dtype = op.a.dtype,
          .result_dtype = op.c.dtype,
          .count = op.batch.count,
          .adds = op.beta != 0,
          .transpose_left = transpose_b,
          .transpose_right = transpose_a,
          .left = operand_of(op.b, op.batch.b_step),
          .right = operand_of(op.a, op.batch.a_step),
          .result = operand_of(op.c, op.batch.c_step),
          .bias_alignment =
              op.bias ? alignment_of(reinterpret_cast<std::uintptr_t>(op.bias->data)) : 0};
}

}  // namespace dstune::cuda
