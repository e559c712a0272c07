#include "core/base/statistics.hpp"

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::statistics_test {
namespace {

TEST(Summarize, TakesTheMiddleOfAnOddNumber) {
  const auto summary = summarize({3, 1, 2});

  EXPECT_EQ(summary.median, 2);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 3);
  EXPECT_DOUBLE_EQ(summary.noise_percent, 50);  // deviations -1, 0, 1: variance 1, mean 2
}

TEST(Summarize, TakesTheMeanOfTheTwoInTheMiddleOfAnEvenNumber) {
  const auto summary = summarize({4, 1, 10, 2});

  EXPECT_EQ(summary.median, 3);
}

TEST(Summarize, HasNoNoiseWithOneSample) {
  EXPECT_EQ(summarize({0.25}), (Summary{0.25, 0.25, 0.25, 0, 1}));
}

TEST(Summarize, HasNoNoiseIfAllSamplesAreZero) {
  EXPECT_EQ(summarize({0, 0}), (Summary{0, 0, 0, 0, 2}));
}

TEST(Summarize, RejectsNoSamples) { EXPECT_THROW(summarize({}), std::invalid_argument); }

TEST(Percentile, IsTheLeastThatEnoughSamplesDoNotExceed) {
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 0.8), 4);
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 0.81), 5);
  EXPECT_EQ(percentile({5, 1}, 0.01), 1);
  EXPECT_THROW(percentile({}, 0.5), std::invalid_argument);
}

// Neighbours go together: -3, -1, 1, 3 have correlation (3 - 1 + 3) / 20.
TEST(Summarize, CountsWhatCorrelatedSamplesAreWorth) {
  EXPECT_DOUBLE_EQ(summarize({1, 3, 5, 7}).independent, 4 * (1 - 0.25) / (1 + 0.25));
  EXPECT_DOUBLE_EQ(summarize({1, 3, 1, 3}).independent, 4) << "never more than there are";
  EXPECT_DOUBLE_EQ(summarize({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).independent, 2);
}

TEST(ErrorOfMean, GrowsWithCorrelation) {
  EXPECT_DOUBLE_EQ(error_of_mean(2, 16, 16), 0.5);
  EXPECT_GT(error_of_mean(2, 16, 4), 1);
  EXPECT_EQ(error_of_mean(2, 1, 1), 2);
}

// The tables of the books.
TEST(Student, HasTheQuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(0.05, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(0.05, 2), 4.303, 1e-3);
  EXPECT_NEAR(student_quantile(0.01, 5), 4.032, 1e-3);
  EXPECT_NEAR(student_quantile(0.001, 10), 4.587, 1e-3);
  EXPECT_NEAR(student_quantile(0.05, 1000), 1.962, 1e-3);
  EXPECT_NEAR(student_chance_outside(2.228, 10), 0.05, 1e-4);
}

TEST(PooledSpread, TakesEachGroupAboutItsOwnMean) {
  EXPECT_EQ(pooled_spread({}).freedom, 0);
  EXPECT_DOUBLE_EQ(pooled_spread({{1, 3}, {10, 10, 10}, {7}}).sd, std::sqrt(2.0 / 3));
  EXPECT_EQ(pooled_spread({{1, 3}, {10, 10, 10}, {7}}).freedom, 3);
}

TEST(SlowPart, NoticesTwoModesAndAHeavyTail) {
  const auto modes = slow_part({1, 1.01, 1.2, 0.99, 1.21, 1.19, 1, 1.2, 1});
  const auto tail = slow_part({1, 1.01, 0.99, 1, 1.5, 1.01, 0.99, 1, 1.01});

  ASSERT_TRUE(modes && tail);
  EXPECT_EQ(modes->count, 4);
  EXPECT_NEAR(modes->longer, 0.2, 1e-9);
  EXPECT_EQ(tail->count, 1);
  EXPECT_NEAR(tail->longer, 0.5 / 1.00125 - 0.00125 / 1.00125, 1e-9);
}

TEST(SlowPart, LeavesAlonePartsThatAreNearOrFew) {
  EXPECT_FALSE(slow_part({1, 1.001, 1.04, 0.999, 1.041, 1.039, 1, 1.04, 1})) << "below 5 %";
  EXPECT_FALSE(slow_part({1, 1, 1, 1, 2}));
  EXPECT_FALSE(slow_part(std::vector<double>(20, 1.0)));
}

// A thousand sets of each length, of which noise of 20 % makes gaps of more than 5 % common.
TEST(SlowPart, IsRarelyFoundInNormalSamples) {
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal(1, 0.2);
  for (const std::size_t length : {6U, 7U, 9U, 12U, 20U, 60U}) {
    int found = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<double> samples(length);
      for (double& sample : samples) sample = normal(generator);
      found += slow_part(samples) ? 1 : 0;
    }
    EXPECT_LE(found, 15) << length;
  }
}

}  // namespace
}  // namespace dstune::statistics_test
