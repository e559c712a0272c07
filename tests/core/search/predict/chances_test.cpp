#include "core/search/predict/chances.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace dstune::chances_test {
namespace {

TEST(LogSpeed, IsOfSamplesOrOfSteps) {
  EXPECT_DOUBLE_EQ(log_speed(Metric::throughput, 8, 2), std::log(4));
  EXPECT_DOUBLE_EQ(log_speed(Metric::flops, 8, 2), std::log(4));
  EXPECT_DOUBLE_EQ(log_speed(Metric::latency, 8, 2), std::log(0.5));
}

// Quantiles of the normal distribution from tables.
TEST(NormalShareBelow, IsTheDistribution) {
  EXPECT_DOUBLE_EQ(normal_share_below(0), 0.5);
  EXPECT_NEAR(normal_share_below(1.6448536269514722), 0.95, 1e-12);
  EXPECT_NEAR(normal_share_below(-2.3263478740408408), 0.01, 1e-12);
  EXPECT_GT(normal_share_below(-30), 0) << "no cancellation";
}

TEST(Guess, ChanceIsThatOfANormalLogarithm) {
  const Guess guess = guess_of(Metric::throughput, 4, {2, 0.1});

  EXPECT_NEAR(guess.chance_above(std::log(2) + 0.1), 1 - 0.8413447460685429, 1e-12);
  EXPECT_DOUBLE_EQ((Guess{1, 0}.chance_above(0.5)), 1);
  EXPECT_DOUBLE_EQ((Guess{1, 0}.chance_above(1)), 0);
}

TEST(FormatChance, HasAsManyDigitsAsItNeeds) {
  EXPECT_EQ(format_chance(0.123), "12 %");
  EXPECT_EQ(format_chance(0.0081), "0.8 %");
  EXPECT_EQ(format_chance(0.0004), "0.04 %");
  EXPECT_EQ(format_chance(1e-7), "less than 0.01 %");
}

TEST(FormatUpperChance, IsABoundOnce) {
  EXPECT_EQ(format_upper_chance(0.123), "at most 12 %");
  EXPECT_EQ(format_upper_chance(1e-7), "less than 0.01 %");
}

}  // namespace
}  // namespace dstune::chances_test
