#include "core/train/stopping_rule.hpp"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::stopping_rule_test {
namespace {

constexpr Seconds kAmple = 1000;

// Of steps of which every micro-step ran.
bool is_enough(const StoppingRule& rule, const std::vector<double>& times) {
  return rule.is_enough(times, std::accumulate(times.begin(), times.end(), 0.0));
}

TEST(StoppingRule, NeedsOneStepEvenIfNoneIsAskedFor) {
  const StoppingRule rule(0, kAmple);

  EXPECT_FALSE(is_enough(rule, {}));
  EXPECT_TRUE(is_enough(rule, {1}));
}

TEST(StoppingRule, EndsQuietMeasurementAtTheMinimum) {
  const StoppingRule rule(3, kAmple);

  EXPECT_FALSE(is_enough(rule, {1, 1}));
  EXPECT_TRUE(is_enough(rule, {1, 1, 1}));
}

TEST(StoppingRule, GoesOnWhileNoiseIsAboveFivePercent) {
  const StoppingRule rule(3, kAmple);

  EXPECT_FALSE(is_enough(rule, {0.94, 1, 1.06}));  // relative standard deviation 6 %
  EXPECT_TRUE(is_enough(rule, {0.96, 1, 1.04}));   // 4 %
}

TEST(StoppingRule, EndsWhenFurtherStepsHaveCalmedTheMeasurement) {
  const StoppingRule rule(3, kAmple);
  std::vector<double> times = {1.12, 1, 1};

  EXPECT_FALSE(is_enough(rule, times));

  times.insert(times.end(), {1, 1});
  EXPECT_FALSE(is_enough(rule, times));  // 0.12 / sqrt(5) of a mean of 1.024: 5.2 %

  times.push_back(1);
  EXPECT_TRUE(is_enough(rule, times));  // 0.12 / sqrt(6) of a mean of 1.02: 4.8 %
}

TEST(StoppingRule, GivesUpOnNoiseAfterThreeTimesTheMinimum) {
  const StoppingRule rule(2, kAmple);

  EXPECT_FALSE(is_enough(rule, {1, 2, 1, 2, 1}));
  EXPECT_TRUE(is_enough(rule, {1, 2, 1, 2, 1, 2}));
}

TEST(StoppingRule, GivesUpOnNoiseAfterHalfTheTimeLimit) {
  const std::vector<double> times = {1, 2, 1};

  EXPECT_FALSE(is_enough(StoppingRule(3, 8.5), times));
  EXPECT_TRUE(is_enough(StoppingRule(3, 8), times));
}

TEST(StoppingRule, GoesOnUntilTheLeastTimeIsOver) {
  const StoppingRule rule(2, kAmple, StepsDiffer::by_noise, 0, 1.5);

  EXPECT_FALSE(is_enough(rule, {0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125}));
  EXPECT_TRUE(is_enough(rule, {0.75, 0.75}));
  EXPECT_FALSE(is_enough(rule, {1.5})) << "the steps that are asked for come first";
  const StoppingRule short_of_time(2, 2, StepsDiffer::by_noise, 0, 1.5);
  EXPECT_TRUE(is_enough(short_of_time, {0.5, 0.5})) << "half of the time limit";
}

TEST(StoppingRule, MeasuresTheMinimumHoweverLongItTakes) {
  const StoppingRule rule(3, 1);

  EXPECT_FALSE(is_enough(rule, {100, 100}));
}

TEST(StoppingRule, GivesUpWhatIsTooSlowAfterItsFirstSteps) {
  const StoppingRule rule(5, kAmple, StepsDiffer::by_noise, 1.2);

  EXPECT_TRUE(rule.needs_more_than(1));
  EXPECT_FALSE(is_enough(rule, {1.3}));
  EXPECT_FALSE(rule.needs_more_than(2));
  EXPECT_TRUE(is_enough(rule, {1.3, 1.21}));
  EXPECT_FALSE(is_enough(rule, {9, 1.19})) << "one slow step says nothing";
  EXPECT_TRUE(rule.needs_more_than(3));
  EXPECT_FALSE(is_enough(rule, {1.3, 1.3, 1.3})) << "ranks that did not give up after two go on";
}

TEST(StoppingRule, GivesUpNothingOfStepsThatDifferByNature) {
  const StoppingRule rule(3, kAmple, StepsDiffer::by_nature, 1);

  EXPECT_TRUE(rule.needs_more_than(2));
  EXPECT_FALSE(is_enough(rule, {5, 5}));
}

TEST(StoppingRule, NeedsNoMoreThanTheMinimumToGiveUp) {
  EXPECT_TRUE(is_enough(StoppingRule(1, kAmple, StepsDiffer::by_noise, 0.5), {1}));
}

// Batches of different lengths: what is noise elsewhere is what is measured here.
TEST(StoppingRule, OfStepsThatDifferByNatureSeeksTheirMean) {
  const StoppingRule rule(3, kAmple, StepsDiffer::by_nature);
  std::vector<double> times(7, 1);

  EXPECT_FALSE(is_enough(rule, times));  // too few to know their spread
  times.push_back(1);
  EXPECT_TRUE(is_enough(rule, times));

  times.back() = 1.5;
  EXPECT_FALSE(is_enough(rule, times));  // 0.177 / sqrt(8) of a mean of 1.0625: 5.9 %
  while (!is_enough(rule, times)) times.push_back(1);
  EXPECT_EQ(times.size(), 17U);  // 0.1213 / sqrt(17) of 1.0294: 2.86 %; with 16: 3.03 %
}

TEST(StoppingRule, OfStepsThatDifferByNatureTakesTwentyTimesTheMinimumAtMost) {
  const StoppingRule rule(1, kAmple, StepsDiffer::by_nature);
  std::vector<double> times;
  while (!is_enough(rule, times)) times.push_back(times.size() % 2 == 0 ? 1 : 9);

  EXPECT_EQ(times.size(), 20U);
  EXPECT_TRUE(is_enough(StoppingRule(1, 20, StepsDiffer::by_nature), {1, 9}));  // half of the limit
}

// Where micro-steps are left out, a step takes less time than it counts for.
TEST(StoppingRule, CountsTheTimeThatPassed) {
  const StoppingRule rule(2, kAmple, StepsDiffer::by_noise, 0, 3);

  EXPECT_FALSE(rule.is_enough({2, 2}, 2.9));
  EXPECT_TRUE(rule.is_enough({2, 2}, 3));
}

}  // namespace
}  // namespace dstune::stopping_rule_test
