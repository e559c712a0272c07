#include "core/search/predict/likeness.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace dstune::likeness_test {
namespace {

StepConfig of_stage(int stage) {
  StepConfig step;
  step.stage = stage;
  return step;
}

Likeness likeness_of(const std::vector<StepConfig>& steps) {
  std::vector<Configuration> configurations;
  for (const StepConfig& step : steps) configurations.push_back({&step, 128, false});
  return Likeness(configurations);
}

TEST(LikenessTest, ConfigurationsThatAreEqualDifferInNoSetting) {
  EXPECT_EQ(likeness_of({of_stage(1), of_stage(1)}).settings(), 0U);
}

TEST(LikenessTest, SwitchesAreAlikeOrNot) {
  StepConfig on = of_stage(1);
  on.overlap_comm = true;
  const Likeness likeness = likeness_of({of_stage(1), on, of_stage(1)});

  ASSERT_EQ(likeness.settings(), 1U);
  EXPECT_EQ(likeness.in_setting(0, 0, 1), 0);
  EXPECT_EQ(likeness.in_setting(0, 0, 2), 1);
}

TEST(LikenessTest, NumbersAreLessAlikeWithEachDoubling) {
  StepConfig small = of_stage(1);
  small.reduce_bucket_size = 1 << 20;
  StepConfig large = small;
  large.reduce_bucket_size = 1 << 23;
  const Likeness likeness = likeness_of({small, large});

  ASSERT_EQ(likeness.settings(), 1U);
  EXPECT_DOUBLE_EQ(likeness.in_setting(0, 0, 1), std::exp(-0.75));
}

// Of stage 0 no bucket counts, whatever it says.
TEST(LikenessTest, ASettingThatAStepDoesNotReadIsNoValue) {
  StepConfig first = of_stage(0);
  StepConfig second = of_stage(0);
  second.reduce_bucket_size = 1000;
  EXPECT_EQ(likeness_of({first, second}).settings(), 0U);
}

TEST(LikenessTest, SettingsThatMoveTogetherCountOnce) {
  StepConfig one = of_stage(1);
  one.micro_batch = 1;
  one.accumulation_steps = 8;
  StepConfig other = of_stage(1);
  other.micro_batch = 4;
  other.accumulation_steps = 2;
  EXPECT_EQ(likeness_of({one, other}).settings(), 1U);
}

TEST(LikenessTest, LengthsAndFullMemoryAreSettings) {
  const StepConfig step = of_stage(2);
  const Likeness likeness(
      {{&step, 128, false}, {&step, 256, false}, {&step, 128, true}, {&step, 128, false}});

  ASSERT_EQ(likeness.settings(), 2U);
  EXPECT_DOUBLE_EQ(likeness.in_setting(0, 0, 1), std::exp(-0.25));
  EXPECT_EQ(likeness.in_setting(0, 0, 2), 1);
  EXPECT_EQ(likeness.in_setting(1, 0, 2), 0);
}

}  // namespace
}  // namespace dstune::likeness_test
