#include "core/search/plan/batch_points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StagePlan plan_up_to(std::int64_t most) {
  StagePlan plan;
  plan.stage = 1;
  plan.feasible = true;
  plan.max_micro_batch = most;
  return plan;
}

TEST(SpreadMicroBatches, DoublesWithOneBetween) {
  EXPECT_THAT(spread_micro_batches(1, 21), ElementsAre(1, 2, 3, 4, 6, 8, 12, 16, 21));
  EXPECT_THAT(spread_micro_batches(5, 8), ElementsAre(5, 6, 8));
  EXPECT_THAT(spread_micro_batches(3, 3), ElementsAre(3));
  EXPECT_THAT(spread_micro_batches(1, 1), ElementsAre(1));
  EXPECT_THAT(spread_micro_batches(2, 1), IsEmpty());
}

TEST(ExactPoints, AreAllPairsThatMakeTheBatch) {
  EXPECT_THAT(
      exact_points(48, 4, 2, 1, 6),
      ElementsAre(Point{2, 1, 12}, Point{2, 2, 6}, Point{2, 3, 4}, Point{2, 4, 3}, Point{2, 6, 2}));
  EXPECT_THAT(exact_points(48, 4, 2, 5, 100), ElementsAre(Point{2, 6, 2}, Point{2, 12, 1}));
  EXPECT_THAT(exact_points(50, 4, 2, 1, 100), IsEmpty()) << "50 samples are none of 4 ranks";
}

TEST(BatchPoints, AreWhatFitsWithTheUsersAccumulation) {
  TuningConfig config;
  config.accumulation_steps = 3;

  EXPECT_THAT(batch_points(config, 2, plan_up_to(4)),
              ElementsAre(Point{1, 1, 3}, Point{1, 2, 3}, Point{1, 3, 3}, Point{1, 4, 3}));
  EXPECT_THAT(batch_points(config, 2, StagePlan()), IsEmpty()) << "nothing fits";
}

TEST(BatchPoints, AreTheUsersListAsFarAsItFits) {
  TuningConfig config;
  config.micro_batches = {2, 5, 7};

  EXPECT_THAT(batch_points(config, 2, plan_up_to(6)), ElementsAre(Point{1, 2, 1}, Point{1, 5, 1}));
}

TEST(BatchPoints, MakeAFixedBatchExactly) {
  TuningConfig config;
  config.objective.train_batch_size = 24;
  EXPECT_THAT(batch_points(config, 2, plan_up_to(4)),
              ElementsAre(Point{1, 1, 12}, Point{1, 2, 6}, Point{1, 3, 4}, Point{1, 4, 3}));

  config.micro_batches = {2, 4, 5};
  EXPECT_THAT(batch_points(config, 2, plan_up_to(4)), ElementsAre(Point{1, 2, 6}, Point{1, 4, 3}));
}

}  // namespace
}  // namespace dstune
