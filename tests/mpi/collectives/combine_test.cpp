#include "mpi/collectives/combine.hpp"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

namespace dstune::combine_test {
namespace {

TEST(Combine, SixteenBitSumIsRoundedOnce) {
  std::array into = {from_float<BFloat16>(256.0F)};
  std::array other = {from_float<BFloat16>(1.5F)};

  combine(ReduceOp::sum, Tensor{other.data(), 1, DType::bf16}, Tensor{into.data(), 1, DType::bf16});

  EXPECT_EQ(to_float(into[0]), 258.0F);  // 257.5; neighbours in bf16 are 256 and 258
}

TEST(Combine, Float16OverflowsToInfinity) {
  std::array into = {from_float<Float16>(60000.0F)};
  std::array other = into;

  combine(ReduceOp::sum, Tensor{other.data(), 1, DType::fp16}, Tensor{into.data(), 1, DType::fp16});

  EXPECT_TRUE(std::isinf(to_float(into[0])));
}

TEST(Combine, MaximumKeepsNanOfEitherSide) {
  std::array into = {1.0F, NAN, 3.0F};
  std::array other = {NAN, 1.0F, 2.0F};

  combine(ReduceOp::max, Tensor{other.data(), 3, DType::fp32}, Tensor{into.data(), 3, DType::fp32});

  EXPECT_TRUE(std::isnan(into[0]));
  EXPECT_TRUE(std::isnan(into[1]));
  EXPECT_EQ(into[2], 3.0F);
}

}  // namespace
}  // namespace dstune::combine_test
