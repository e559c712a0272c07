#include "core/base/statistics.hpp"

#include <stdexcept>

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
  EXPECT_EQ(summarize({0.25}), (Summary{0.25, 0.25, 0.25, 0}));
}

TEST(Summarize, HasNoNoiseIfAllSamplesAreZero) {
  EXPECT_EQ(summarize({0, 0}), (Summary{0, 0, 0, 0}));
}

TEST(Summarize, RejectsNoSamples) { EXPECT_THROW(summarize({}), std::invalid_argument); }

TEST(Percentile, IsTheLeastThatEnoughSamplesDoNotExceed) {
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 0.8), 4);
  EXPECT_EQ(percentile({5, 1, 4, 2, 3}, 0.81), 5);
  EXPECT_EQ(percentile({5, 1}, 0.01), 1);
  EXPECT_THROW(percentile({}, 0.5), std::invalid_argument);
}

}  // namespace
}  // namespace dstune::statistics_test
