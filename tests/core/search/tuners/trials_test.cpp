#include "core/search/tuners/trials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pool_search.hpp"

namespace dstune::trials_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::make_pool;
using testing_support::make_record;
using testing_support::Row;

class TrialsTest : public testing::Test {
 protected:
  void learn(std::size_t index, Seconds step_time) {
    const auto trial = static_cast<int>(trials_.tried());
    trials_.learn(make_record(trials_.at(index).candidate, step_time, trial));
  }

  Trials trials_{make_pool({{"small", 1, 1, 10},
                            {"large", 1, 1, 30},
                            {"middle", 1, 1, 20},
                            {"larger", 1, 1, 40},
                            {"other", 2, 1, 50}}),
                 Metric::throughput};
};

TEST_F(TrialsTest, EverythingIsOpenAtFirst) {
  EXPECT_THAT(trials_.open(), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_FALSE(trials_.best());
  EXPECT_EQ(trials_.since_best(), 0U);
}

TEST_F(TrialsTest, WhatWasTriedIsNotOpen) {
  learn(1, 2);

  EXPECT_THAT(trials_.open(), ElementsAre(0, 2, 3, 4));
  EXPECT_EQ(trials_.tried(), 1U);
  EXPECT_EQ(trials_.measured(1)->step_time.median, 2);
  EXPECT_EQ(trials_.measured(0), nullptr);
}

TEST_F(TrialsTest, OfExactTiesTheSimplestIsTheBestWhicheverCameFirst) {
  learn(4, 1);  // of stage 2, the others are of stage 1
  learn(2, 2);
  EXPECT_EQ(trials_.best(), 4U);

  learn(0, 1);

  EXPECT_EQ(trials_.best(), 0U);
  EXPECT_EQ(trials_.since_best(), 3U) << "nothing has become faster since the first";
  learn(1, 1);
  EXPECT_EQ(trials_.best(), 0U) << "as simple as the one before";
}

TEST_F(TrialsTest, LargerMemoryOfTheStageWaitsForSmallerAfterOutOfMemory) {
  learn(2, 0);

  EXPECT_THAT(trials_.open(), ElementsAre(0, 4)) << "20 was too much: 30 and 40 wait for 10";
  learn(0, 1);
  EXPECT_THAT(trials_.open(), ElementsAre(4, 1)) << "nothing smaller is left: the smaller of both";
  learn(1, 0);
  EXPECT_THAT(trials_.open(), ElementsAre(4, 3));
  EXPECT_EQ(trials_.warnings(3), 2);
}

TEST_F(TrialsTest, WhatNeedsNoMoreThanOneThatRanDoesNotWait) {
  learn(2, 0);
  learn(3, 1);

  EXPECT_THAT(trials_.open(), ElementsAre(0, 1, 4));
  EXPECT_EQ(trials_.warnings(1), 0);
}

TEST_F(TrialsTest, TheBestIsTheFirstOfEqualOnes) {
  learn(0, 2);
  learn(1, 1);
  learn(2, 1);
  learn(3, 0);

  EXPECT_EQ(trials_.best(), 1U);
  EXPECT_EQ(trials_.since_best(), 3U) << "itself and two that were no better";
  EXPECT_EQ(trials_.measurements(), 3U);
}

TEST_F(TrialsTest, LearningTheSameAgainCountsOnce) {
  learn(0, 2);
  learn(0, 2);

  EXPECT_EQ(trials_.tried(), 1U);
}

TEST_F(TrialsTest, KnowsNoStrangers) {
  EXPECT_THROW(trials_.learn(make_record({"stranger", {}, 0}, 1, 0)), std::out_of_range);
}

}  // namespace
}  // namespace dstune::trials_test
