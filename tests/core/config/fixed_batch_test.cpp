#include "core/config/fixed_batch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::fixed_batch_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TuningConfig of(std::int64_t total) {
  TuningConfig config;
  config.objective.train_batch_size = total;
  return config;
}

TEST(FixedBatchSplits, AreAllPairsThatMakeTheBatchExactly) {
  EXPECT_THAT(fixed_batch_splits(of(36), 2),
              ElementsAre(BatchSplit{1, 18}, BatchSplit{2, 9}, BatchSplit{3, 6}, BatchSplit{6, 3},
                          BatchSplit{9, 2}, BatchSplit{18, 1}));
  EXPECT_THAT(fixed_batch_splits(of(50), 4), IsEmpty()) << "50 is not a multiple of 4";
  EXPECT_THAT(fixed_batch_splits(TuningConfig{}, 4), IsEmpty()) << "nothing is fixed";
}

TEST(FixedBatchSplits, KeepTheUsersLimitsListAndAccumulation) {
  TuningConfig limited = of(48);
  limited.autotuning.min_train_micro_batch_size_per_gpu = 2;
  limited.autotuning.max_train_micro_batch_size_per_gpu = 6;
  TuningConfig listed = of(48);
  listed.micro_batches = {5, 6, 12};
  TuningConfig accumulated = of(48);
  accumulated.accumulation_is_given = true;
  accumulated.accumulation_steps = 3;

  EXPECT_THAT(fixed_batch_splits(limited, 4),
              ElementsAre(BatchSplit{2, 6}, BatchSplit{3, 4}, BatchSplit{4, 3}, BatchSplit{6, 2}));
  EXPECT_THAT(fixed_batch_splits(listed, 4), ElementsAre(BatchSplit{6, 2}, BatchSplit{12, 1}));
  EXPECT_THAT(fixed_batch_splits(accumulated, 4), ElementsAre(BatchSplit{4, 3}));
}

// A complete DeepSpeed file has all three numbers: its micro-batch is where the search begins.
TEST(FixedBatchSplits, AreAllWhereTheMicroBatchIsANumberToo) {
  TuningConfig config = of(16);
  config.accumulation_is_given = true;
  config.accumulation_steps = 2;
  config.micro_batch_is_given = true;
  config.start_micro_batch = 4;

  EXPECT_EQ(fixed_batch_splits(config, 2).size(), 4U);
  EXPECT_EQ(fixed_batch_fault(config, 2), "");
}

TEST(FixedBatchFault, NamesTheNearestBatchesThatGo) {
  EXPECT_EQ(fixed_batch_fault(of(60), 8),
            "is 60, which is not a multiple of 8 ranks; the nearest that work are 56 and 64");
  EXPECT_EQ(fixed_batch_fault(of(5), 8),
            "is 5, which is not a multiple of 8 ranks; the nearest that works is 8");
  EXPECT_EQ(fixed_batch_fault(of(64), 8), "");
  EXPECT_EQ(fixed_batch_fault(of(61), std::nullopt), "") << "the ranks are not known";
  EXPECT_EQ(fixed_batch_fault(TuningConfig{}, 8), "");
}

// Such products have more than 63 bits; none of them is a divisor of 0, or a batch to name.
TEST(FixedBatchFault, HoldsWhateverTheNumbersAre) {
  TuningConfig huge = of(9);
  huge.accumulation_is_given = true;
  huge.accumulation_steps = 536'870'912;
  huge.autotuning.min_train_micro_batch_size_per_gpu = 536'870'912;
  TuningConfig all = huge;
  all.micro_batch_is_given = true;
  all.start_micro_batch = 1'000'000'000;

  EXPECT_EQ(fixed_batch_fault(huge, 64),
            "is 9, which is not a multiple of accumulation steps 536870912 x 64 ranks");
  EXPECT_EQ(
      fixed_batch_fault(all, 64),
      "is 9, but micro-batch 1000000000 x accumulation steps 536870912 x 64 ranks are more "
      "than 1000000000; what works is \"auto\" for the micro-batch or the accumulation steps");
}

TEST(FixedBatchSplits, TakeAListWhateverTheLimitsOfASearch) {
  TuningConfig listed = of(4096);
  listed.micro_batches = {2048};

  EXPECT_THAT(fixed_batch_splits(listed, 2), ElementsAre(BatchSplit{2048, 1}));
  EXPECT_EQ(fixed_batch_fault(listed, 2), "");
}

TEST(FixedBatchFault, SaysWhichMicroBatchesMakeItNot) {
  TuningConfig listed = of(14);
  listed.micro_batches = {2, 4};
  TuningConfig accumulated = of(4096);
  accumulated.accumulation_is_given = true;
  accumulated.accumulation_steps = 1;
  accumulated.autotuning.max_train_micro_batch_size_per_gpu = 64;

  EXPECT_EQ(
      fixed_batch_fault(listed, 2),
      "is 14, which no micro-batch of the list 2, 4 can produce on 2 ranks; the nearest that work "
      "are 12 and 16");
  EXPECT_EQ(
      fixed_batch_fault(accumulated, 2),
      "is 4096, which no micro-batch within autotuning's 1 to 64 can produce on accumulation steps "
      "1 x 2 ranks; the nearest that works is 128");
}

}  // namespace
}  // namespace dstune::fixed_batch_test
