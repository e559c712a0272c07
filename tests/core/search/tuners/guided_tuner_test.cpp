#include "core/search/tuners/guided_tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pool_search.hpp"

namespace dstune::guided_tuner_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::make_pool;
using testing_support::Row;
using testing_support::search;
using testing_support::TableForecaster;

class GuidedTunerTest : public testing::Test {
 protected:
  GuidedTuner tuner() {
    return {config_, 1, make_pool(rows_), std::make_unique<TableForecaster>(rows_)};
  }

  TuningConfig config_;
  std::vector<Row> rows_;
};

TEST_F(GuidedTunerTest, BeginsWithWhatIsPredictedToBeBestOfAllStages) {
  rows_ = {{"slow", 0, 1, 1, {3, 1}}, {"fast", 3, 1, 1, {1, 0.1}}, {"middle", 1, 1, 1, {2, 5}}};
  auto guided = tuner();

  EXPECT_EQ(guided.next(1).front().name, "fast");
}

// After "known" took 1 s: z of "sure" is log(1.02) less the 1 % of noise, over 0.005, that is 2;
// "bold" has log(1.2) - 0.01 over 0.3, that is 0.6.
TEST_F(GuidedTunerTest, PrefersTheHigherChanceToTheHigherHope) {
  rows_ = {{"known", 1, 1, 1, {0.5, 0.01}},
           {"bold", 1, 1, 1, {1 / 1.2, 0.3}},
           {"sure", 1, 1, 1, {1 / 1.02, 0.005}}};
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_, 1, 2).names(), ElementsAre("known", "sure"));
}

TEST_F(GuidedTunerTest, OfTwoThatAreCertainToBeBetterTakesTheFaster) {
  rows_ = {{"known", 1, 10, 1, {0.5, 0.01}},
           {"better", 1, 1, 1, {5, 0.01}},
           {"best", 1, 1, 1, {1, 0.1}}};
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_, 1, 2).names(), ElementsAre("known", "best"));
}

// As things will stand when "first" has run as predicted, its twin is no better than noise; what
// is less well known may be.
TEST_F(GuidedTunerTest, IdleGroupsGetWhatMayBeatThoseInFlight) {
  rows_ = {{"first", 1, 1, 1, {1, 0.02}},
           {"twin", 1, 1, 1, {1.001, 0.02}},
           {"unknown", 2, 1, 1, {1.05, 0.5}}};
  auto guided = tuner();

  const auto batch = guided.next(2);

  ASSERT_THAT(batch, SizeIs(2));
  EXPECT_EQ(batch[0].name, "first");
  EXPECT_EQ(batch[1].name, "unknown");
}

TEST_F(GuidedTunerTest, StopsWhenNothingHasAChance) {
  for (int i = 0; i < 20; ++i) {
    rows_.push_back({"c" + std::to_string(i), 1, 1 + 0.1 * i, 1, {1 + 0.1 * i, 0.02}});
  }
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_).names(), ElementsAre("c0", "c1", "c2", "c3", "c4"))
      << "five measurements at least";
  EXPECT_EQ(guided.best()->experiment.name, "c0");
}

TEST_F(GuidedTunerTest, GoesOnWhileOneHasAChance) {
  for (int i = 0; i < 8; ++i) {
    rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {1 + 0.1 * i, 1}});
  }
  auto guided = tuner();
  EXPECT_THAT(search(guided, rows_).names(), SizeIs(8));

  config_.stop_at_chance = 0.4;
  auto hasty = tuner();
  EXPECT_THAT(search(hasty, rows_).names(), SizeIs(5));
}

TEST_F(GuidedTunerTest, FillsNoGroupWithWhatHasNoChance) {
  rows_ = {{"a", 1, 1, 1, {1, 0.02}},       {"b", 1, 1, 1, {1, 0.02}},
           {"c", 1, 1, 1, {1, 0.02}},       {"d", 1, 1, 1, {1, 0.02}},
           {"e", 1, 1, 1, {1, 0.02}},       {"hopeful", 1, 1, 1, {1, 0.5}},
           {"hopeless", 1, 1, 1, {9, 0.02}}};
  auto guided = tuner();
  search(guided, rows_, 5, 5);

  const auto batch = guided.next(3);

  ASSERT_THAT(batch, SizeIs(1));
  EXPECT_TRUE(batch[0].name != "hopeless");
}

// Twice as likely as not to be better, if it fits; and one that needs less was too large.
TEST_F(GuidedTunerTest, WhatWasOutOfMemoryMakesLargerOnesWait) {
  rows_ = {{"large", 1, 0, 50, {1, 0.1}},
           {"larger", 1, 0, 60, {1.1, 0.1}},
           {"small", 1, 3, 10, {3, 0.1}},
           {"other", 2, 2, 70, {2, 0.1}}};
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_).names(), ElementsAre("large", "other", "small", "larger"));
}

// One of five has a z of -2 of 1 %; the others are alike: 1 - (1 - 0.0228) (1 - 0.00135)^2.
TEST_F(GuidedTunerTest, SaysWhatItDidNotTryAndHowLikelyItLostByThat) {
  const double beyond = 0.01;  // the least noise that counts
  const auto with_z = [&](double z) { return Prediction{std::exp(0.01 * z) / (1 + beyond), 0.01}; };
  config_.stop_at_chance = 0.05;
  for (int i = 0; i < 5; ++i) rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {0.1, 0.01}});
  rows_.push_back({"likeliest", 1, 1, 1, with_z(2)});
  rows_.push_back({"d", 1, 1, 1, with_z(3)});
  rows_.push_back({"e", 1, 1, 1, with_z(3)});
  auto guided = tuner();
  search(guided, rows_);

  const auto remarks = guided.remarks();

  ASSERT_THAT(remarks, SizeIs(2));
  EXPECT_EQ(remarks[0],
            "guided tried 5 of 8 configurations: no other has a chance of 5.0 % "
            "(stop_at_chance)");
  EXPECT_EQ(remarks[1],
            "of the 3 configurations that were not tried the likeliest to be better beyond noise "
            "is likeliest with a chance of 2.3 %; that any of them is has a chance of at most "
            "2.5 %");
}

TEST_F(GuidedTunerTest, TrialsBoundIt) {
  config_.autotuning.tuner_num_trials = 3;
  for (int i = 0; i < 8; ++i) rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {1, 1}});
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_, 2).names(), SizeIs(3));
  EXPECT_THAT(guided.remarks().front(), HasSubstr("tuner_num_trials is 3"));
}

TEST_F(GuidedTunerTest, AsksTheSameUntilItHasLearnt) {
  for (int i = 0; i < 8; ++i) rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {1, 1}});
  auto guided = tuner();

  const auto first = guided.next(2);

  EXPECT_EQ(guided.next(2).front().name, first.front().name);
  EXPECT_FALSE(guided.best());
}

}  // namespace
}  // namespace dstune::guided_tuner_test
