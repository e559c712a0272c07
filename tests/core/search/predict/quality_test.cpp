#include "core/search/predict/quality.hpp"

#include <gtest/gtest.h>

namespace dstune::quality_test {
namespace {

TEST(RankCorrelation, IsOneForAnyGrowingFunction) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 5, 2, 9}, {10, 1000, 20, 1e9}), 1);
}

TEST(RankCorrelation, IsMinusOneForAFallingOne) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
}

// Ranks about their mean: -2 -0.5 -0.5 1 2 and -1 -2 0.5 0.5 2.
TEST(RankCorrelation, GivesEqualValuesTheMeanOfTheirRanks) {
  EXPECT_NEAR(rank_correlation({1, 2, 2, 4, 5}, {2, 1, 3, 3, 7}), 7.25 / 9.5, 1e-12);
}

TEST(RankCorrelation, IsNoneWithoutTwoValues) {
  EXPECT_EQ(rank_correlation({1, 1, 1}, {1, 2, 3}), 0);
  EXPECT_EQ(rank_correlation({1, 2}, {1, 2}), 0);
}

TEST(SummarizeQuality, CountsErrorsAndWhatIsInside) {
  const PredictorQuality quality =
      summarize_quality({1.1, 2.0, 2.4, 4.0}, {1.0, 2.0, 3.0, 4.0}, {1.0, 0.1, 1.7, 0.2});

  EXPECT_EQ(quality.count, 4);
  EXPECT_NEAR(quality.median_error, 0.05, 1e-12);
  EXPECT_DOUBLE_EQ(quality.rank_correlation, 1);
  EXPECT_DOUBLE_EQ(quality.inside_90, 0.75);
}

TEST(SummarizeQuality, WidensIntervalsThatWereWrongTooOften) {
  std::vector<double> surprises(17, 1.0);
  surprises.push_back(2 * kInside90);
  surprises.push_back(3 * kInside90);
  const std::vector<double> times(19, 1.0);

  EXPECT_DOUBLE_EQ(summarize_quality(times, times, surprises).widening, 2);
}

TEST(SummarizeQuality, LeavesGoodIntervals) {
  const std::vector<double> times(20, 1.0);

  EXPECT_EQ(summarize_quality(times, times, std::vector<double>(20, 0.1)).widening, 1);
}

TEST(SummarizeQuality, SaysNothingOfOneMeasurement) {
  EXPECT_EQ(summarize_quality({1}, {2}, {5}), PredictorQuality{});
}

}  // namespace
}  // namespace dstune::quality_test
