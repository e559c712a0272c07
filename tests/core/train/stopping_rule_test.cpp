#include "core/train/stopping_rule.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace dstune::stopping_rule_test {
namespace {

constexpr Seconds kAmple = 1000;

TEST(StoppingRule, NeedsOneStepEvenIfNoneIsAskedFor) {
  const StoppingRule rule(0, kAmple);

  EXPECT_FALSE(rule.is_enough({}));
  EXPECT_TRUE(rule.is_enough({1}));
}

TEST(StoppingRule, EndsQuietMeasurementAtTheMinimum) {
  const StoppingRule rule(3, kAmple);

  EXPECT_FALSE(rule.is_enough({1, 1}));
  EXPECT_TRUE(rule.is_enough({1, 1, 1}));
}

TEST(StoppingRule, GoesOnWhileNoiseIsAboveFivePercent) {
  const StoppingRule rule(3, kAmple);

  EXPECT_FALSE(rule.is_enough({0.94, 1, 1.06}));  // relative standard deviation 6 %
  EXPECT_TRUE(rule.is_enough({0.96, 1, 1.04}));   // 4 %
}

TEST(StoppingRule, EndsWhenFurtherStepsHaveCalmedTheMeasurement) {
  const StoppingRule rule(3, kAmple);
  std::vector<double> times = {1.12, 1, 1};

  EXPECT_FALSE(rule.is_enough(times));

  times.insert(times.end(), {1, 1});
  EXPECT_FALSE(rule.is_enough(times));  // 0.12 / sqrt(5) of a mean of 1.024: 5.2 %

  times.push_back(1);
  EXPECT_TRUE(rule.is_enough(times));  // 0.12 / sqrt(6) of a mean of 1.02: 4.8 %
}

TEST(StoppingRule, GivesUpOnNoiseAfterThreeTimesTheMinimum) {
  const StoppingRule rule(2, kAmple);

  EXPECT_FALSE(rule.is_enough({1, 2, 1, 2, 1}));
  EXPECT_TRUE(rule.is_enough({1, 2, 1, 2, 1, 2}));
}

TEST(StoppingRule, GivesUpOnNoiseAfterHalfTheTimeLimit) {
  const std::vector<double> times = {1, 2, 1};

  EXPECT_FALSE(StoppingRule(3, 8.5).is_enough(times));
  EXPECT_TRUE(StoppingRule(3, 8).is_enough(times));
}

TEST(StoppingRule, GoesOnUntilTheLeastTimeIsOver) {
  const StoppingRule rule(2, kAmple, StepsDiffer::by_noise, 0, 1.5);

  EXPECT_FALSE(rule.is_enough({0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}));
  EXPECT_TRUE(rule.is_enough({0.75, 0.75}));
  EXPECT_FALSE(rule.is_enough({1.5})) << "the steps that are asked for come first";
  const StoppingRule short_of_time(2, 2, StepsDiffer::by_noise, 0, 1.5);
  EXPECT_TRUE(short_of_time.is_enough({0.5, 0.5})) << "half of the time limit";
}

TEST(StoppingRule, MeasuresTheMinimumHoweverLongItTakes) {
  const StoppingRule rule(3, 1);

  EXPECT_FALSE(rule.is_enough({100, 100}));
}

TEST(StoppingRule, GivesUpWhatIsTooSlowAfterItsFirstSteps) {
  const StoppingRule rule(5, kAmple, StepsDiffer::by_noise, 1.2);

  EXPECT_TRUE(rule.needs_more_than(1));
  EXPECT_FALSE(rule.is_enough({1.3}));
  EXPECT_FALSE(rule.needs_more_than(2));
  EXPECT_TRUE(rule.is_enough({1.3, 1.21}));
  EXPECT_FALSE(rule.is_enough({9, 1.19})) << "one slow step says nothing";
  EXPECT_TRUE(rule.needs_more_than(3));
  EXPECT_FALSE(rule.is_enough({1.3, 1.3, 1.3})) << "ranks that did not give up after two go on";
}

TEST(StoppingRule, GivesUpNothingOfStepsThatDifferByNature) {
  const StoppingRule rule(3, kAmple, StepsDiffer::by_nature, 1);

  EXPECT_TRUE(rule.needs_more_than(2));
  EXPECT_FALSE(rule.is_enough({5, 5}));
}

TEST(StoppingRule, NeedsNoMoreThanTheMinimumToGiveUp) {
  EXPECT_TRUE(StoppingRule(1, kAmple, StepsDiffer::by_noise, 0.5).is_enough({1}));
}

// Batches of different lengths: what is noise elsewhere is what is measured here.
TEST(StoppingRule, OfStepsThatDifferByNatureSeeksTheirMean) {
  const StoppingRule rule(3, kAmple, StepsDiffer::by_nature);
  std::vector<double> times(7, 1);

  EXPECT_FALSE(rule.is_enough(times));  // too few to know their spread
  times.push_back(1);
  EXPECT_TRUE(rule.is_enough(times));

  times.back() = 1.5;
  EXPECT_FALSE(rule.is_enough(times));  // 0.177 / sqrt(8) of a mean of 1.0625: 5.9 %
  while (!rule.is_enough(times)) times.push_back(1);
  EXPECT_EQ(times.size(), 17U);  // 0.1213 / sqrt(17) of 1.0294: 2.86 %; with 16: 3.03 %
}

TEST(StoppingRule, OfStepsThatDifferByNatureTakesTwentyTimesTheMinimumAtMost) {
  const StoppingRule rule(1, kAmple, StepsDiffer::by_nature);
  std::vector<double> times;
  while (!rule.is_enough(times)) times.push_back(times.size() % 2 == 0 ? 1 : 9);

  EXPECT_EQ(times.size(), 20U);
  EXPECT_TRUE(StoppingRule(1, 20, StepsDiffer::by_nature).is_enough({1, 9}));  // half of the limit
}

// Where micro-steps are left out, a step takes less time than it counts for.
TEST(StoppingRule, CountsTheTimeThatPassed) {
  const StoppingRule rule(2, kAmple, StepsDiffer::by_noise, 0, 3);

  EXPECT_FALSE(rule.is_enough({2, 2}, 2.9));
  EXPECT_TRUE(rule.is_enough({2, 2}, 3));
}

}  // namespace
}  // namespace dstune::stopping_rule_test
