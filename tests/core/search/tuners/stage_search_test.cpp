#include "core/search/tuners/stage_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/simulated_machine.hpp"

namespace dstune::stage_search_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::make_tuning_config;
using testing_support::SimulatedMachine;

TEST(BisectionTree, HoldsTheMiddlesThatABisectionMayVisitNext) {
  EXPECT_THAT(bisection_tree(1, 7, 1), ElementsAre(4));
  EXPECT_THAT(bisection_tree(1, 7, 3), ElementsAre(4, 6, 2));
  EXPECT_THAT(bisection_tree(1, 3, 10), ElementsAre(2, 3, 1));
  EXPECT_THAT(bisection_tree(3, 2, 4), IsEmpty());
}

/// Searches one stage and notes the order of the experiments.
class StageSearchTest : public testing::Test {
 protected:
  StageResult search(std::int64_t previous_max = 0) {
    config_.stages = {1};
    plan_ = plan_stages(config_, 2, machine_.predictor()).front();
    for (;;) {
      prober_.begin(1);
      const auto result = StageSearch(prober_, config_, 2, plan_).run(previous_max);
      if (prober_.wanted().empty()) return result;
      measure(prober_.wanted().front());
    }
  }

  void measure(const Point& point) {
    const auto experiment = make_experiment(config_, 2, make_candidate(config_, 2, point));
    order_.push_back(experiment.name);
    prober_.learn(point, {experiment, machine_.run(experiment), {}, 0, 0});
  }

  SimulatedMachine machine_;
  TuningConfig config_ = make_tuning_config(300 + 16 * 10);
  StagePlan plan_;
  std::vector<std::string> order_;
  Prober prober_{config_};
};

TEST_F(StageSearchTest, ProposesSmallestLargestHalfAndOneSmaller) {
  const auto result = search();

  EXPECT_THAT(order_, ElementsAre("z1_gas1_tmbspg1", "z1_gas1_tmbspg16", "z1_gas2_tmbspg8",
                                  "z1_gas1_tmbspg14"));
  EXPECT_EQ(result.max_micro_batch, 16);
}

TEST_F(StageSearchTest, StartsFromTheUsersMicroBatch) {
  config_.start_micro_batch = 3;

  search();

  EXPECT_EQ(order_.front(), "z1_gas1_tmbspg3");
}

TEST_F(StageSearchTest, StartsFromTheLeastIfTheUsersMicroBatchDoesNotFit) {
  config_.start_micro_batch = 17;

  search();

  EXPECT_EQ(order_.front(), "z1_gas1_tmbspg1");
}

TEST_F(StageSearchTest, StartsFromTheLargestOfTheStageBefore) {
  search(12);

  EXPECT_THAT(order_, ElementsAre("z1_gas1_tmbspg12", "z1_gas1_tmbspg16", "z1_gas1_tmbspg15"));
}

TEST_F(StageSearchTest, TriesTheLeastIfTheUsersMicroBatchFails) {
  config_.start_micro_batch = 4;
  machine_.fails = [](const Point& point) { return point.micro_batch == 4; };

  search();

  EXPECT_EQ(order_[0], "z1_gas1_tmbspg4");
  EXPECT_EQ(order_[1], "z1_gas1_tmbspg1");
}

TEST_F(StageSearchTest, GivesUpIfNothingRuns) {
  machine_.fails = [](const Point&) { return true; };

  const auto result = search();

  EXPECT_EQ(result.best, nullptr);
  EXPECT_EQ(result.max_micro_batch, 0);
  EXPECT_THAT(order_, ElementsAre("z1_gas1_tmbspg1"));
}

TEST_F(StageSearchTest, FindsTheLargestExactlyIfThePredictionIsTooHigh) {
  machine_.predicted_too_little = 300;
  machine_.samples_per_s = [](const Point& point) { return 10.0 * double(point.micro_batch); };

  const auto result = search();

  EXPECT_EQ(plan_.max_micro_batch, 46);
  EXPECT_EQ(result.max_micro_batch, 16);
  EXPECT_EQ(result.best->experiment.name, "z1_gas1_tmbspg16");
  EXPECT_THAT(
      std::vector(order_.begin(), order_.begin() + 8),
      ElementsAre("z1_gas1_tmbspg1", "z1_gas1_tmbspg46", "z1_gas1_tmbspg43", "z1_gas1_tmbspg22",
                  "z1_gas1_tmbspg11", "z1_gas1_tmbspg16", "z1_gas1_tmbspg19", "z1_gas1_tmbspg17"));
}

TEST_F(StageSearchTest, FindsTheLargestExactlyIfThePredictionIsTooLow) {
  machine_.predicted_too_much = 100;
  machine_.samples_per_s = [](const Point& point) { return 10.0 * double(point.micro_batch); };

  const auto result = search();

  EXPECT_EQ(plan_.max_micro_batch, 6);
  EXPECT_EQ(result.max_micro_batch, 16);
  EXPECT_THAT(std::vector(order_.begin(), order_.begin() + 3),
              ElementsAre("z1_gas1_tmbspg1", "z1_gas1_tmbspg6", "z1_gas1_tmbspg16"));
}

TEST_F(StageSearchTest, GoesUpNoFurtherThanWhatIsReservedLeavesRoomFor) {
  machine_.predicted_too_much = 100;
  machine_.reserved = 300 + 16 * 10;  // all there is
  machine_.samples_per_s = [](const Point& point) { return 10.0 * double(point.micro_batch); };

  EXPECT_EQ(search().max_micro_batch, 6) << "the estimate";
}

TEST_F(StageSearchTest, StopsLookingForMoreWhenTheGainIsBelowFivePercent) {
  machine_.predicted_too_little = 300;

  const auto result = search();

  EXPECT_EQ(result.max_micro_batch, 11) << "the first success of the bisection gains nothing";
}

// The prediction of 6 is too low by 10, but one more step says that more samples gain nothing.
TEST_F(StageSearchTest, GoesUpNoFurtherThanTheGainIsWorth) {
  machine_.predicted_too_much = 100;
  config_.settings.memory_limit = 300 + 30 * 10;
  machine_.samples_per_s = [](const Point& point) {
    return point.micro_batch < 20 ? 100.0 : 104.9;
  };

  search();

  EXPECT_THAT(order_, testing::Not(testing::Contains("z1_gas1_tmbspg32")));
}

TEST_F(StageSearchTest, SurvivesAnUnknownActivationSize) {
  machine_.per_micro_batch = 0;
  config_.autotuning.max_train_micro_batch_size_per_gpu = 4;

  const auto result = search();

  EXPECT_EQ(result.max_micro_batch, 4);
}

TEST_F(StageSearchTest, ComparesEachSmallerMicroBatchWithTheOneBefore) {
  // 16 → 14 gains 10 %, 14 → 12 gains 1 % only.
  machine_.samples_per_s = [](const Point& point) {
    return point.micro_batch == 14 ? 110.0 : point.micro_batch == 12 ? 111.0 : 100.0;
  };

  const auto result = search();

  EXPECT_EQ(result.best->experiment.name, "z1_gas1_tmbspg14");
  EXPECT_THAT(std::vector(order_.end() - 2, order_.end()),
              ElementsAre("z1_gas1_tmbspg14", "z1_gas1_tmbspg12"));
}

TEST_F(StageSearchTest, RunsExactlyTheUsersList) {
  config_.micro_batches = {2, 4, 8};

  const auto result = search();

  EXPECT_THAT(order_, ElementsAre("z1_gas4_tmbspg2", "z1_gas2_tmbspg4", "z1_gas1_tmbspg8"));
  EXPECT_EQ(result.max_micro_batch, 8);
}

TEST_F(StageSearchTest, FillsTheLargestTrainBatchByAccumulation) {
  config_.autotuning.max_train_batch_size = 128;

  search();

  EXPECT_THAT(order_, ElementsAre("z1_gas1_tmbspg1", "z1_gas1_tmbspg16", "z1_gas8_tmbspg8",
                                  "z1_gas6_tmbspg10", "z1_gas5_tmbspg12", "z1_gas4_tmbspg16",
                                  "z1_gas4_tmbspg15"));
}

TEST_F(StageSearchTest, EndsWithTheNumberOfTrials) {
  config_.autotuning.tuner_num_trials = 2;

  const auto result = search();

  EXPECT_THAT(order_, ElementsAre("z1_gas1_tmbspg1", "z1_gas1_tmbspg16"));
  EXPECT_EQ(result.best->experiment.name, "z1_gas1_tmbspg1");
}

TEST_F(StageSearchTest, AFixedBatchIsMadeByWhatItVisits) {
  config_.objective.train_batch_size = 48;
  machine_.samples_per_s = [](const Point& point) { return 10.0 + double(point.micro_batch); };

  const auto result = search();

  EXPECT_EQ(plan_.max_micro_batch, 12) << "24 does not fit";
  EXPECT_THAT(order_, ElementsAre("z1_gas2_tmbspg12", "z1_gas3_tmbspg8", "z1_gas4_tmbspg6",
                                  "z1_gas6_tmbspg4"));
  EXPECT_EQ(result.max_micro_batch, 12);
  EXPECT_EQ(result.best->experiment.name, "z1_gas2_tmbspg12");
}

TEST_F(StageSearchTest, AFixedBatchGoesDownAsLongAsThatPays) {
  config_.objective.train_batch_size = 48;
  machine_.samples_per_s = [](const Point& point) { return 100.0 / double(point.micro_batch); };

  search();

  EXPECT_EQ(order_.back(), "z1_gas24_tmbspg1");
}

TEST_F(StageSearchTest, AFixedBatchGoesDownWhereThePredictionIsTooHigh) {
  config_.objective.train_batch_size = 48;
  machine_.predicted_too_little = 300;

  EXPECT_EQ(search().max_micro_batch, 12);
  EXPECT_EQ(order_.front(), "z1_gas1_tmbspg24");
}

TEST_F(StageSearchTest, AFixedBatchGoesUpWhereThePredictionIsTooLow) {
  config_.objective.train_batch_size = 48;
  machine_.predicted_too_much = 100;

  EXPECT_EQ(search().max_micro_batch, 12);
  EXPECT_THAT(std::vector(order_.begin(), order_.begin() + 3),
              ElementsAre("z1_gas4_tmbspg6", "z1_gas3_tmbspg8", "z1_gas2_tmbspg12"));
}

}  // namespace
}  // namespace dstune::stage_search_test
