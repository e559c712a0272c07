#include "kernels/cuda/gemm/product.hpp"

#include <gtest/gtest.h>

namespace dstune::cuda::product_test {

namespace {

/// A matrix at an address that nobody reads.
Matrix matrix_at(std::uintptr_t address, std::int64_t rows, std::int64_t cols,
                 std::int64_t stride) {
  return {reinterpret_cast<void*>(address), rows, cols, DType::bf16, stride};
}

TEST(ProductTest, ARowMajorProductIsTheTransposedOneOfItsTransposes) {
  const ColumnMajorProduct product = product_of({.transpose_a = Transpose::yes,
                                                 .a = matrix_at(4096, 5, 2, 8),
                                                 .b = matrix_at(8192, 5, 3, 16),
                                                 .beta = 1,
                                                 .c = matrix_at(12288, 2, 3, 4)});

  EXPECT_EQ(product, (ColumnMajorProduct{.dtype = DType::bf16,
                                         .result_dtype = DType::bf16,
                                         .adds = true,
                                         .transpose_left = false,
                                         .transpose_right = true,
                                         .left = {3, 5, 16, 256},
                                         .right = {2, 5, 8, 256},
                                         .result = {3, 2, 4, 256}}));
}

TEST(ProductTest, AlignmentIsThePowerOfTwoThatDividesTheAddress) {
  const auto alignment = [](std::uintptr_t address) {
    return product_of({.a = matrix_at(address, 1, 1, 1),
                       .b = matrix_at(256, 1, 1, 1),
                       .c = matrix_at(256, 1, 1, 1)})
        .right.alignment;
  };
  EXPECT_EQ(alignment(1024), 256U);
  EXPECT_EQ(alignment(256 + 64), 64U);
  EXPECT_EQ(alignment(256 + 6), 2U);
}

TEST(ProductTest, OnesWithABiasAreOthersAndKnowItsAlignment) {
  const Matrix matrix = matrix_at(4096, 8, 8, 8);
  Gemm gemm{.a = matrix, .b = matrix, .c = matrix};
  EXPECT_EQ(product_of(gemm).bias_alignment, 0U);

  gemm.bias = Tensor{reinterpret_cast<void*>(std::uintptr_t{8192 + 32}), 8, DType::bf16};

  EXPECT_EQ(product_of(gemm).bias_alignment, 32U);
}

}  // namespace

}  // namespace dstune::cuda::product_test
