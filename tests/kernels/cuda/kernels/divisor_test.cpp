#include <cstdint>

#include <gtest/gtest.h>

#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda::divisor_test {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 31U;

TEST(Divisor, DividesLikeTheOperator) {
  for (const std::int64_t value :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7}, std::int64_t{64},
        std::int64_t{641}, std::int64_t{50257}, std::int64_t{65537}, kLimit / 2 + 1, kLimit - 1}) {
    const Divisor divisor(value);
    EXPECT_EQ(*divisor, static_cast<std::uint32_t>(value));
    for (const std::int64_t multiple :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, (kLimit - 1) / value}) {
      for (const std::int64_t beside : {-1, 0, 1}) {
        const std::int64_t number = multiple * value + beside;
        if (number < 0) continue;
        EXPECT_EQ(number / divisor, number / value) << number << " by " << value;
      }
    }
  }
}

TEST(Divisor, TakesNumbersAndDivisorsOfMoreThan31Bits) {
  EXPECT_EQ((3 * kLimit + 5) / Divisor(7), (3 * kLimit + 5) / 7);
  EXPECT_EQ((3 * kLimit + 5) / Divisor(kLimit), 3);
  EXPECT_EQ((kLimit - 1) / Divisor(kLimit), 0);
}

}  // namespace
}  // namespace dstune::cuda::divisor_test
