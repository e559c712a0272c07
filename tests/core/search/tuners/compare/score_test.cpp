#include "core/search/tuners/compare/score.hpp"

#include <gtest/gtest.h>

namespace dstune::score_test {
namespace {

Measured make_measured(double samples_per_s, double noise_percent) {
  Measured measured;
  measured.steps = 6;  // 1.96 standard errors of the median are their standard deviation
  measured.samples_per_s = samples_per_s;
  measured.step_time.median = 1 / samples_per_s;
  measured.step_time.noise_percent = noise_percent;
  measured.flops_per_s_per_rank = 3e9;
  return measured;
}

TEST(Score, IsLargerForTheShorterStepWithLatency) {
  const auto fast = make_measured(4, 0);
  const auto slow = make_measured(2, 0);

  EXPECT_GT(score(Metric::latency, fast), score(Metric::latency, slow));
  EXPECT_EQ(score(Metric::latency, slow), -0.5);
  EXPECT_EQ(score(Metric::throughput, fast), 4);
  EXPECT_EQ(score(Metric::flops, fast), 3e9);
}

TEST(RelativeGain, CountsAgainstTheIncumbentForEveryMetric) {
  EXPECT_NEAR(relative_gain(105, 100), 0.05, 1e-12);
  EXPECT_NEAR(relative_gain(-0.95, -1), 0.05, 1e-12);
  EXPECT_NEAR(relative_gain(-1.1, -1), -0.1, 1e-12);
  EXPECT_EQ(relative_gain(0, 0), 0);
  EXPECT_GT(relative_gain(1, 0), 1e300);
}

TEST(IsClearlyBetter, NeedsOnePercentOfQuietMeasurements) {
  const auto incumbent = make_measured(100, 0);

  EXPECT_FALSE(is_clearly_better(Metric::throughput, make_measured(100.9, 0), incumbent));
  EXPECT_TRUE(is_clearly_better(Metric::throughput, make_measured(101.1, 0), incumbent));
}

TEST(IsClearlyBetter, NeedsMoreThanTheCombinedNoise) {
  const auto incumbent = make_measured(100, 3);

  EXPECT_FALSE(is_clearly_better(Metric::throughput, make_measured(104.2, 3), incumbent));
  EXPECT_TRUE(is_clearly_better(Metric::throughput, make_measured(104.3, 3), incumbent));
}

TEST(IsClearlyBetter, CountsNoiseForFivePercentAtMost) {
  const auto incumbent = make_measured(100, 60);

  EXPECT_FALSE(is_clearly_better(Metric::throughput, make_measured(104.9, 60), incumbent));
  EXPECT_TRUE(is_clearly_better(Metric::throughput, make_measured(105.1, 60), incumbent));
}

TEST(IsClearlyBetter, MinimisesLatency) {
  const auto slow = make_measured(100, 0);
  const auto fast = make_measured(110, 0);

  EXPECT_TRUE(is_clearly_better(Metric::latency, fast, slow));
  EXPECT_FALSE(is_clearly_better(Metric::latency, slow, fast));
}

TEST(Score, OfTokensIsThatWithoutPadding) {
  Measured measured = make_measured(4, 0);
  measured.tokens_per_s = 77;

  EXPECT_EQ(score(Metric::tokens, measured), 77);
}

TEST(IsClearlyBetter, TakesTheSpreadOfBatchesForNoNoise) {
  Measured fast = make_measured(102, 40);
  Measured slow = make_measured(100, 40);
  EXPECT_FALSE(is_clearly_better(Metric::throughput, fast, slow));

  fast.varying.emplace();
  slow.varying.emplace();
  fast.steps = slow.steps = 3600;  // a standard error of 0.7 %

  EXPECT_TRUE(is_clearly_better(Metric::throughput, fast, slow));
}

}  // namespace
}  // namespace dstune::score_test
