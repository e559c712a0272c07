#include "core/device/operations/gemm.hpp"

#include <gtest/gtest.h>

namespace dstune::gemm_test {
namespace {

TEST(WorkOfGemm, CountsTwoFlopsPerProductAndEveryOperandOnce) {
  const Matrix a{nullptr, 5, 3, DType::bf16, 3};  // transposed: 3 x 5
  const Matrix b{nullptr, 5, 7, DType::bf16, 7};
  const Matrix c{nullptr, 3, 7, DType::bf16, 7};

  const Work work = work_of(Gemm{.transpose_a = Transpose::yes, .a = a, .b = b, .c = c});

  EXPECT_EQ(work.flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(work.read_bytes(), 2U * (15 + 35));
  EXPECT_EQ(work.written_bytes(), 2U * 21);
}

TEST(WorkOfGemm, ThatAccumulatesReadsItsResultToo) {
  const Matrix square{nullptr, 4, 4, DType::fp32, 4};

  const Work work = work_of(Gemm{.a = square, .b = square, .beta = 1, .c = square});

  EXPECT_EQ(work.read_bytes(), 4U * 3 * 16);
  EXPECT_EQ(work.written_bytes(), 4U * 16);
}

TEST(WorkOfGemm, AddsItsBiasWithoutAPassOfItsOwn) {
  const Matrix square{nullptr, 4, 4, DType::fp32, 4};
  const Tensor bias{nullptr, 4, DType::fp32};

  const Work work = work_of(Gemm{.a = square, .b = square, .c = square, .bias = bias});

  EXPECT_EQ(work.flops, 2.0 * 4 * 4 * 4 + 4 * 4);
  EXPECT_EQ(work.read_bytes(), 4U * (2 * 16 + 4));
  EXPECT_EQ(work.written_bytes(), 4U * 16);
}

}  // namespace
}  // namespace dstune::gemm_test
