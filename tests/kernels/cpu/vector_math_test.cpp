#include "kernels/cpu/vector_math.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

namespace dstune::cpu::vector_math_test {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// f(x) for x over [first, last] in `steps` steps.
template <class F>
void sweep(double first, double last, int steps, F f) {
  for (int i = 0; i <= steps; ++i) f(static_cast<float>(first + (last - first) * i / steps));
}

TEST(VectorMathTest, ExpIsAccurate) {
  sweep(-86.5, 88.7, 20011, [](float x) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(fast_exp(x)), exact, 2e-7 * exact) << x;
  });
}

TEST(VectorMathTest, ExpHasTheRightLimits) {
  EXPECT_EQ(fast_exp(0.0F), 1.0F);
  EXPECT_EQ(fast_exp(-100.0F), 0.0F);
  EXPECT_EQ(fast_exp(-kInfinity), 0.0F);
  EXPECT_EQ(fast_exp(89.0F), kInfinity);
  EXPECT_EQ(fast_exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(fast_exp(std::nanf(""))));
}

TEST(VectorMathTest, TanhIsAccurate) {
  sweep(-20, 20, 20011, [](float x) {
    const double exact = std::tanh(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(fast_tanh(x)), exact, 3e-7 * std::fabs(exact)) << x;
  });
  sweep(-1e-3, 1e-3, 1001, [](float x) {
    const double exact = std::tanh(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(fast_tanh(x)), exact, 3e-7 * std::fabs(exact)) << x;
  });
}

TEST(VectorMathTest, ErfcIsAccurate) {
  sweep(0, 9, 20011, [](float z) {
    const double exact = std::erfc(static_cast<double>(z));
    ASSERT_NEAR(static_cast<double>(erfc_over_exp(z) * fast_exp(-z * z)), exact, 4e-7) << z;
  });
  EXPECT_NEAR(static_cast<double>(erfc_over_exp(0.0F)), 1, 2e-7);
  EXPECT_TRUE(std::isnan(erfc_over_exp(std::nanf(""))));
}

TEST(VectorMathTest, TanhHasTheRightLimits) {
  EXPECT_EQ(fast_tanh(kInfinity), 1.0F);
  EXPECT_EQ(fast_tanh(-kInfinity), -1.0F);
  EXPECT_TRUE(std::isnan(fast_tanh(std::nanf(""))));
}

TEST(VectorMathTest, LogIsAccurateOverTheUniformNumbers) {
  sweep(0x1p-24, 1, 20011, [](float x) {
    const double exact = std::log(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(fast_log(x)), exact, 2e-7 * std::fabs(exact) + 1e-12) << x;
  });
  EXPECT_EQ(fast_log(1.0F), 0.0F);
}

TEST(VectorMathTest, CosineOfATurnIsAccurate) {
  sweep(0, 0x1.fffffep-1, 20011, [](float u) {
    const double exact = std::cos(2 * std::numbers::pi * static_cast<double>(u));
    ASSERT_NEAR(static_cast<double>(fast_cos_turns(u)), exact, 2.5e-7) << u;
  });
}

}  // namespace

}  // namespace dstune::cpu::vector_math_test
