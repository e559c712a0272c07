#include "core/search/tuners/guided_tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/predict/chances.hpp"
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

// "bold" is faster than "sure" in 70 % of what may be.
TEST_F(GuidedTunerTest, PrefersWhatIsMostOftenTheBest) {
  rows_ = {{"known", 1, 1, 1, {0.5, 0.01}},
           {"bold", 1, 1, 1, {1 / 1.2, 0.3}},
           {"sure", 1, 1, 1, {1 / 1.02, 0.005}}};
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_, 1, 2).names(), ElementsAre("known", "bold"));
}

TEST_F(GuidedTunerTest, OfTwoThatAreCertainToBeBetterTakesTheFaster) {
  rows_ = {{"known", 1, 10, 1, {0.5, 0.01}},
           {"better", 1, 1, 1, {5, 0.01}},
           {"best", 1, 1, 1, {1, 0.1}}};
  auto guided = tuner();

  EXPECT_THAT(search(guided, rows_, 1, 2).names(), ElementsAre("known", "best"));
}

// The twin of "first" is hardly faster, if it is; what is less well known may be.
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

TEST_F(GuidedTunerTest, SaysHowManyMayFollowAndHowLongTheyTake) {
  for (int i = 0; i < 20; ++i) {
    rows_.push_back({"c" + std::to_string(i), 1, 1 + 0.1 * i, 1, {1 + 0.1 * i, 0.02}});
  }
  auto guided = tuner();

  const auto first = guided.next(1);
  EXPECT_EQ(guided.still_to_come(), 20) << "nothing is known yet";
  EXPECT_NEAR(guided.foretold("c0").value(), 1, 0.01);
  guided.learn(testing_support::make_record(first[0], 1, 0));
  guided.next(1);
  EXPECT_EQ(guided.still_to_come(), 4) << "five measurements at least";

  search(guided, rows_);
  EXPECT_EQ(guided.still_to_come(), 0);
}

TEST_F(GuidedTunerTest, NoMoreFollowThanTrialsAreLeft) {
  config_.autotuning.tuner_num_trials = 3;
  for (int i = 0; i < 8; ++i) {
    rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {1 + 0.1 * i, 1}});
  }
  auto guided = tuner();
  guided.next(1);

  EXPECT_EQ(guided.still_to_come(), 3);
}

TEST_F(GuidedTunerTest, GoesOnWhileOneHasAChance) {
  for (int i = 0; i < 8; ++i) {
    rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {1 + 0.1 * i, 1}});
  }
  auto guided = tuner();
  EXPECT_THAT(search(guided, rows_).names(), SizeIs(8));

  config_.stop_at_chance = 0.4;
  auto hasty = tuner();
  EXPECT_THAT(search(hasty, rows_).names(), SizeIs(testing::AllOf(testing::Ge(5), testing::Lt(8))));
}

TEST_F(GuidedTunerTest, GivesUpWhatTakesAFifthLongerThanTheBest) {
  rows_ = {{"best", 1, 1, 1, {1, 0.5}}, {"other", 1, 1.5, 1, {2, 0.5}}};
  auto guided = tuner();
  const auto first = guided.next(1);
  EXPECT_EQ(first[0].give_up_above, 0) << "there is nothing to be slower than";
  guided.learn(testing_support::make_record(first[0], 1, 0));

  const auto second = guided.next(1);

  EXPECT_NEAR(second[0].give_up_above, 1.22, 0.02);
}

TEST_F(GuidedTunerTest, AgainstANoisyBestGivesUpLater) {
  rows_ = {{"best", 1, 1, 1, {1, 0.5}}, {"other", 1, 1.5, 1, {2, 0.5}}};
  auto guided = tuner();
  guided.learn(testing_support::make_record(guided.next(1)[0], 1, 0, 20));

  EXPECT_GT(guided.next(1)[0].give_up_above, 1.6);
}

TEST_F(GuidedTunerTest, GivesUpLaterWhereTheMachineBecameSlower) {
  rows_ = {
      {"best", 1, 1, 1, {1, 0.5}}, {"other", 1, 1.5, 1, {2, 0.5}}, {"third", 1, 2, 1, {2, 0.5}}};
  auto guided = tuner();
  guided.learn(testing_support::make_record(guided.next(1)[0], 1, 0));
  auto record = testing_support::make_record(guided.next(1)[0], 1.5, 1);
  record.slowed = 1.3;
  guided.learn(record);

  EXPECT_NEAR(guided.next(1)[0].give_up_above, 1.3 * 1.22, 0.03);
}

TEST_F(GuidedTunerTest, SaysHowManyItGaveUp) {
  rows_ = {{"best", 1, 1, 1, {1, 0.5}}, {"other", 1, 1.5, 1, {2, 0.5}}};
  auto guided = tuner();
  guided.learn(testing_support::make_record(guided.next(1)[0], 1, 0));
  const auto other = guided.next(1)[0];
  auto record = testing_support::make_record(other, 1.5, 1);
  record.experiment.give_up_above = other.give_up_above;
  record.experiment.settings.measure_steps = 5;
  std::get<Measured>(record.outcome).steps = 2;

  guided.learn(record);

  EXPECT_THAT(guided.remarks(),
              testing::Contains(HasSubstr("1 configuration took so much longer")));
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

TEST_F(GuidedTunerTest, SaysWhatItDidNotTryAndHowLikelyItLostByThat) {
  config_.stop_at_chance = 0.05;
  for (int i = 0; i < 5; ++i) rows_.push_back({"c" + std::to_string(i), 1, 1, 1, {1, 0.01}});
  rows_.push_back({"likeliest", 1, 1, 1, {1.02, 0.01}});
  rows_.push_back({"d", 1, 1, 1, {1.2, 0.01}});
  rows_.push_back({"e", 1, 1, 1, {1.3, 0.01}});
  auto guided = tuner();
  search(guided, rows_);

  const auto remarks = guided.remarks();

  ASSERT_THAT(remarks, SizeIs(2));
  EXPECT_EQ(remarks[0],
            "guided tried 5 of 8 configurations: the chance that another is better by more "
            "than 1 % is below 5.0 % (stop_at_chance)");
  EXPECT_EQ(
      remarks[1],
      "of the 3 configurations that were not tried, likeliest is the likeliest to be better by "
      "more than 1 %, with a chance of " +
          format_chance(guided.outlook().chance_of_likeliest) +
          "; the chance that any of them is: " +
          format_upper_chance(guided.outlook().chance_of_any));
  EXPECT_GT(guided.outlook().chance_of_likeliest, 0);
  EXPECT_LT(guided.outlook().chance_of_any, 0.05);
}

// Physics is wrong about everything of stage 3, and all that it likes is of stage 1.
TEST_F(GuidedTunerTest, ProbesAStageAgainstWhichPhysicsIsWrong) {
  for (int i = 0; i < 30; ++i) {
    rows_.push_back({"z1_" + std::to_string(i), 1, 1, 1, {1 + 1e-3 * i, 0.001}});
    rows_.push_back({"z3_" + std::to_string(i), 3, 0.9, 1, {1.05 + 1e-3 * i, 0.001}});
  }
  auto guided = tuner();
  const auto tried = search(guided, rows_).names();

  EXPECT_THAT(guided.best()->experiment.name, testing::StartsWith("z3"));
  EXPECT_LT(tried.size(), 20U);
}

TEST_F(GuidedTunerTest, NamesAsContendersWhatMayTrulyBeTheBest) {
  rows_ = {{"a", 1, 1, 1, {1, 0.5}}, {"b", 1, 1.001, 1, {1, 0.5}}, {"c", 1, 2, 1, {1, 0.5}}};
  auto guided = tuner();
  search(guided, rows_);

  EXPECT_THAT(guided.contenders(), testing::UnorderedElementsAre("a", "b"));
}

TEST_F(GuidedTunerTest, PredictsAllCandidatesMeasuredOrNot) {
  rows_ = {{"a", 1, 1, 1, {1, 0.01}}, {"b", 1, 2, 1, {2, 0.5}}};
  auto guided = tuner();
  EXPECT_THAT(guided.predictions(), IsEmpty()) << "nothing was measured";
  search(guided, rows_, 1, 1);

  const auto predictions = guided.predictions();

  ASSERT_THAT(predictions, SizeIs(2));
  EXPECT_EQ(predictions[0].measured, 1);
  EXPECT_NEAR(predictions[0].step_time, 1, 0.01);
  EXPECT_FALSE(predictions[1].measured);
  EXPECT_LT(predictions[1].low, 1);
  EXPECT_GT(predictions[1].high, 4);
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
