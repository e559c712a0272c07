#include "core/search/tuners/outlook.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/predict/chances.hpp"

namespace dstune::outlook_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Candidates without settings, so that they differ by physics alone.
class OutlookTest : public testing::Test {
 protected:
  /// @param own_sd  by candidate, of its log-speed
  void add(double log_speed, double own_sd, bool is_measured = false) {
    physics_.push_back({.log_time = -log_speed, .own_sd = own_sd});
    prospects_.push_back(
        {.is_measured = is_measured, .is_open = !is_measured, .is_tried = is_measured});
  }

  Outlook look() {
    steps_.resize(physics_.size());
    std::vector<Configuration> configurations;
    for (const StepConfig& step : steps_) configurations.push_back({&step, 1, false});
    Belief belief{Likeness(configurations)};
    belief.set_physics(physics_);
    return outlook_of(belief, prospects_);
  }

  std::vector<StepConfig> steps_;
  std::vector<PhysicsGuess> physics_;
  std::vector<Prospect> prospects_;
};

// Each has a standard deviation of its own of 0.4 % besides what physics says.
double sd_of(double own) { return std::hypot(own, 0.004); }

TEST_F(OutlookTest, ChancesAreThoseOfNormalNumbers) {
  add(0, 0, true);
  add(-0.05, 0.05);
  const Outlook outlook = look();

  const double sd = std::hypot(sd_of(0.05), sd_of(0));
  const double chance = Guess{-0.05, sd}.chance_above(std::log(1.01));
  EXPECT_EQ(outlook.best, 0U);
  EXPECT_EQ(outlook.likeliest, 1U);
  EXPECT_NEAR(outlook.chance_of_likeliest, chance, 1e-6);
  EXPECT_NEAR(outlook.chance_of_any, chance, 3 * std::sqrt(chance / 1000));
}

TEST_F(OutlookTest, IndependentChancesAddUp) {
  add(0, 0, true);
  for (int i = 0; i < 10; ++i) add(-0.05, 0.05);
  const Outlook outlook = look();

  EXPECT_NEAR(outlook.chance_of_any, 1 - std::pow(1 - outlook.chance_of_likeliest, 10), 0.05);
}

TEST_F(OutlookTest, ASharedErrorIsOneChance) {
  add(0, 0, true);
  for (int i = 0; i < 10; ++i) {
    add(-0.05, 0);
    physics_.back().directions[0] = 0.05;
  }
  const Outlook outlook = look();

  EXPECT_NEAR(outlook.chance_of_any, outlook.chance_of_likeliest, 0.05);
}

TEST_F(OutlookTest, EachWarningHalvesAChance) {
  add(0, 0, true);
  add(0.5, 0.01);
  prospects_[1].warnings = 2;
  const Outlook outlook = look();

  EXPECT_NEAR(outlook.chance_of_likeliest, 0.25, 1e-9);
  EXPECT_NEAR(outlook.chance_of_any, 0.25, 0.01);
}

TEST_F(OutlookTest, TriesFirstWhatIsMostOftenTheBest) {
  add(0, 0, true);
  add(0.02, 0.001);
  add(0.05, 0.3);
  add(-0.5, 0.001);

  EXPECT_THAT(look().next, ElementsAre(2, 1)) << "the last has no chance";
}

TEST_F(OutlookTest, OneMayAlwaysBeTried) {
  add(0, 0, true);
  add(-0.5, 0.001);

  EXPECT_THAT(look().next, ElementsAre(1));
}

TEST_F(OutlookTest, ContendersAreTheMeasuredThatMayBeTheBest) {
  add(0, 0.02, true);
  add(0.01, 0.02, true);
  add(-1, 0.02, true);
  add(1, 0.02);

  EXPECT_THAT(look().contenders, ElementsAre(1, 0));
}

TEST_F(OutlookTest, OfExactTiesTheSimplestIsTheBestAndAContender) {
  for (std::size_t i = 0; i < 8; ++i) {
    add(0, 0, true);
    prospects_.back().simplicity = 7 - i;
  }
  const Outlook outlook = look();

  EXPECT_EQ(outlook.best, 7U);
  EXPECT_THAT(outlook.contenders, testing::Contains(7U));
}

TEST_F(OutlookTest, BeforeAMeasurementTheFastestIsFirst) {
  add(0, 0.01);
  add(0.3, 0.01);
  const Outlook outlook = look();

  EXPECT_FALSE(outlook.best);
  EXPECT_EQ(outlook.chance_of_any, 1);
  EXPECT_EQ(outlook.next.front(), 1U);
  EXPECT_THAT(outlook.contenders, IsEmpty());
}

}  // namespace
}  // namespace dstune::outlook_test
