#include "core/search/feasibility/micro_batches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::micro_batches_test {
namespace {

using testing::ElementsAre;

TEST(ListMicroBatches, HoldsTheLargestAndItsHalf) {
  EXPECT_THAT(list_micro_batches(1, 2, 2, 3), ElementsAre(1, 2));
  EXPECT_THAT(list_micro_batches(1, 16, 16, 3), ElementsAre(8, 16));
}

TEST(ListMicroBatches, LeavesOutThoseThatNeedTheAccumulationOfTheLargest) {
  EXPECT_THAT(list_micro_batches(1, 16, 64, 4), ElementsAre(8, 10, 12, 16));
  EXPECT_THAT(list_micro_batches(6, 10, 10, 3), ElementsAre(10));
}

TEST(ListMicroBatches, IsTheLargestAloneIfThereIsNoOther) {
  EXPECT_THAT(list_micro_batches(1, 1, 1, 3), ElementsAre(1));
  EXPECT_THAT(list_micro_batches(4, 4, 8, 3), ElementsAre(4));
}

TuningConfig users_list() {
  TuningConfig config;
  config.micro_batches = {1, 2, 5};
  return config;
}

StagePlan stage_1(std::int64_t max_micro_batch) {
  StagePlan plan;
  plan.stage = 1;
  plan.max_micro_batch = max_micro_batch;
  return plan;
}

TEST(PoolPoints, AreTheUsersListWithTheBatchOfItsLargest) {
  EXPECT_THAT(pool_points(users_list(), 2, stage_1(13)),
              ElementsAre(Point{1, 1, 5}, Point{1, 2, 2}, Point{1, 5, 1}));
}

TEST(PoolPoints, AreTheListWhatIsNearItsLargestAndDoublingsWithoutAUsersList) {
  EXPECT_THAT(
      pool_points({}, 2, stage_1(13)),
      ElementsAre(Point{1, 1, 13}, Point{1, 2, 6}, Point{1, 4, 3}, Point{1, 6, 2}, Point{1, 7, 1},
                  Point{1, 8, 1}, Point{1, 9, 1}, Point{1, 11, 1}, Point{1, 13, 1}));
}

TEST(PoolPoints, HoldTheMicroBatchOfTheFile) {
  TuningConfig config;
  config.start_micro_batch = 3;
  EXPECT_THAT(pool_points(config, 2, stage_1(13)), testing::Contains(Point{1, 3, 4}));

  config.start_micro_batch = 14;
  EXPECT_THAT(pool_points(config, 2, stage_1(13)),
              testing::Each(testing::Field(&Point::micro_batch, testing::Le(13))));
}

TEST(PoolPoints, OfLatencyAccumulateNoMoreThanTheFileDoes) {
  TuningConfig config;
  config.autotuning.metric = Metric::latency;
  config.accumulation_steps = 2;
  config.autotuning.max_train_batch_size = 24;

  EXPECT_THAT(
      pool_points(config, 2, stage_1(5)),
      ElementsAre(Point{1, 1, 2}, Point{1, 2, 2}, Point{1, 3, 2}, Point{1, 4, 2}, Point{1, 5, 2}));
}

TEST(PoolPoints, OfASpaceAreTheListForWhatFitsTheFileAndForWhatFitsItsLeanest) {
  TuningConfig config;
  config.space.with_default = true;
  StagePlan plan = stage_1(4);
  plan.max_micro_batch_of_leanest = 16;

  EXPECT_THAT(
      pool_points(config, 2, plan),
      ElementsAre(Point{1, 2, 8}, Point{1, 3, 5}, Point{1, 4, 4}, Point{1, 8, 2}, Point{1, 16, 1}));
}

TEST(PoolPoints, AreTheLeastWhereNothingFitsForAnotherValueMay) {
  EXPECT_THAT(pool_points({}, 2, stage_1(0)), ElementsAre(Point{1, 1, 1}));
}

TEST(PoolPoints, StayWithinTheLargestTrainBatch) {
  TuningConfig config = users_list();
  config.autotuning.max_train_batch_size = 8;

  EXPECT_THAT(pool_points(config, 2, stage_1(13)), ElementsAre(Point{1, 1, 4}, Point{1, 2, 2}));
}

TEST(PoolPoints, KeepTheUsersAccumulationOfTheLargest) {
  TuningConfig config = users_list();
  config.accumulation_steps = 4;

  EXPECT_THAT(pool_points(config, 2, stage_1(13)),
              ElementsAre(Point{1, 1, 20}, Point{1, 2, 10}, Point{1, 5, 4}));
}

TEST(PoolPoints, MakeAFixedBatchExactly) {
  TuningConfig config;
  config.objective.train_batch_size = 24;
  StagePlan plan;
  plan.stage = 1;
  config.autotuning.max_train_micro_batch_size_per_gpu = 4;
  EXPECT_THAT(pool_points(config, 2, plan),
              ElementsAre(Point{1, 1, 12}, Point{1, 2, 6}, Point{1, 3, 4}, Point{1, 4, 3}));

  config.micro_batches = {2, 4, 5};
  EXPECT_THAT(pool_points(config, 2, plan), ElementsAre(Point{1, 2, 6}, Point{1, 4, 3}));
}

}  // namespace
}  // namespace dstune::micro_batches_test
