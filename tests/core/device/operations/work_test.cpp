#include "core/device/operations/work.hpp"

#include <gtest/gtest.h>

namespace dstune::work_test {
namespace {

TEST(Operand, OfATensorMovesAllOfIt) {
  float element = 0;

  const Operand operand = Tensor{&element, 10, DType::bf16};

  EXPECT_EQ(operand.data, &element);
  EXPECT_EQ(operand.extent, 20U);
  EXPECT_EQ(operand.bytes, 20U);
}

TEST(Operand, OfAMatrixReachesOverWhatLiesBetweenItsRows) {
  const Operand operand = Matrix{nullptr, 3, 4, DType::fp32, 10};

  EXPECT_EQ(operand.extent, 4U * (2 * 10 + 4));
  EXPECT_EQ(operand.bytes, 4U * 12);
}

TEST(Operand, OfANumberReachesOverItAndMovesNothing) {
  const Operand operand = number({nullptr, 1, DType::fp64});

  EXPECT_EQ(operand.extent, 8U);
  EXPECT_EQ(operand.bytes, 0U);
}

TEST(Work, CountsAnOperandOncePerPass) {
  const Tensor tensor{nullptr, 10, DType::fp32};
  Work work{"two_passes", 0, {tensor}, {}};

  work.reads.add({tensor, Operand(tensor).of(4)});

  EXPECT_EQ(work.read_bytes(), 40U + 40 + 4);
  EXPECT_EQ(work.written_bytes(), 0U);
}

}  // namespace
}  // namespace dstune::work_test
