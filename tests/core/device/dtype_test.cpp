#include "core/device/dtype.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace dstune::dtype_test {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
class SixteenBitTest : public ::testing::Test {
 public:
  static T of(std::uint32_t bits) { return T{static_cast<std::uint16_t>(bits)}; }
};
using SixteenBitTypes = ::testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(SixteenBitTest, SixteenBitTypes);

TYPED_TEST(SixteenBitTest, EveryPatternSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const float value = to_float(this->of(bits));

    const TypeParam back = from_float<TypeParam>(value);

    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(to_float(back))) << bits;
      ASSERT_EQ(back.bits & 0x8000U, bits & 0x8000U) << bits;
    } else {
      ASSERT_EQ(back.bits, bits);
    }
  }
}

TYPED_TEST(SixteenBitTest, WhatLiesBetweenTwoNeighboursGoesToTheNearerAndTiesToTheEvenOne) {
  for (std::uint32_t bits = 0; !std::isinf(to_float(this->of(bits + 1))); ++bits) {
    const float low = to_float(this->of(bits));
    const float high = to_float(this->of(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: float has more bits

    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(from_float<TypeParam>(middle).bits, even) << bits;
    ASSERT_EQ(from_float<TypeParam>(-middle).bits, even | 0x8000U) << bits;
    ASSERT_EQ(from_float<TypeParam>(std::nextafter(middle, kInfinity)).bits, bits + 1);
    ASSERT_EQ(from_float<TypeParam>(std::nextafter(middle, 0.0F)).bits, bits);
  }
}

TYPED_TEST(SixteenBitTest, SpecialValuesStayWhatTheyAre) {
  EXPECT_EQ(to_float(from_float<TypeParam>(kInfinity)), kInfinity);
  EXPECT_EQ(to_float(from_float<TypeParam>(-kInfinity)), -kInfinity);
  EXPECT_TRUE(std::isnan(to_float(from_float<TypeParam>(std::nanf("")))));
  EXPECT_EQ(from_float<TypeParam>(-0.0F).bits, 0x8000U);
  EXPECT_EQ(to_float(from_float<TypeParam>(1.0F)), 1.0F);
}

TEST(BFloat16Test, IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(from_float<BFloat16>(1.0F).bits, 0x3f80U);
  EXPECT_EQ(to_float(BFloat16{0x4049U}), 3.140625F);
  EXPECT_EQ(to_float(BFloat16{0x0001U}), 0x1p-133F);
}

TEST(BFloat16Test, LargestFloatRoundsToInfinity) {
  EXPECT_EQ(to_float(from_float<BFloat16>(std::numeric_limits<float>::max())), kInfinity);
}

TEST(Float16Test, HasTheLimitsOfIeeeBinary16) {
  EXPECT_EQ(from_float<Float16>(1.0F).bits, 0x3c00U);
  EXPECT_EQ(to_float(Float16{0x7bffU}), 65504.0F);
  EXPECT_EQ(to_float(Float16{0x0400U}), 0x1p-14F);
  EXPECT_EQ(to_float(Float16{0x0001U}), 0x1p-24F);
}

TEST(Float16Test, OverflowBeginsHalfwayToTheNextNumber) {
  EXPECT_EQ(to_float(from_float<Float16>(65519.996F)), 65504.0F);
  EXPECT_EQ(to_float(from_float<Float16>(65520.0F)), kInfinity);
  EXPECT_EQ(to_float(from_float<Float16>(-1e30F)), -kInfinity);
}

TEST(Float16Test, UnderflowEndsAtHalfTheSmallestSubnormal) {
  EXPECT_EQ(from_float<Float16>(0x1p-25F).bits, 0U);
  EXPECT_EQ(from_float<Float16>(0x1.000002p-25F).bits, 1U);
  EXPECT_EQ(from_float<Float16>(-1e-30F).bits, 0x8000U);
}

TEST(DTypeTest, HasSizesAndNames) {
  EXPECT_EQ(size_of(DType::fp32), 4U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::fp16), 2U);
  EXPECT_EQ(size_of(DType::int64), 8U);
  EXPECT_EQ(name_of(DType::int64), "int64");
  EXPECT_EQ(name_of(DType::fp16), "fp16");
}

}  // namespace

}  // namespace dstune::dtype_test
