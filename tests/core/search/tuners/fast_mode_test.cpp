#include "core/search/tuners/fast_mode.hpp"

#include <functional>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/feasibility/make_experiment.hpp"
#include "tests/support/simulated_machine.hpp"

namespace dstune::fast_mode_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::make_tuning_config;
using testing_support::SimulatedMachine;

std::vector<std::string> names_of(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const auto& candidate : candidates) names.push_back(candidate.name);
  return names;
}

/// Asks the tuner and answers it, without a scheduler.
class FastModeTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.stages = {0};
    machine_.samples_per_s = [](const Point& point) { return 10.0 + double(point.micro_batch); };
    stages_ = plan_stages(config_, 2, machine_.predictor());
  }

  /// What is asked for, batch by batch, until nothing is. All of a batch run at once.
  std::vector<std::vector<std::string>> run(FastMode& tuner, int free_groups,
                                            const std::function<void()>& after_each = {}) {
    std::vector<std::vector<std::string>> batches;
    for (auto batch = tuner.next(free_groups); !batch.empty(); batch = tuner.next(free_groups)) {
      batches.push_back(names_of(batch));
      last_ = batch.back();
      for (const auto& candidate : batch) {
        const auto experiment = make_experiment(config_, 2, candidate);
        tuner.learn({experiment, machine_.run(experiment), {}, time_, time_ + 1});
        if (after_each) after_each();
      }
      time_ += 1;
    }
    return batches;
  }

  SimulatedMachine machine_;
  TuningConfig config_ = make_tuning_config(400 + 4 * 10);
  std::vector<StagePlan> stages_;
  FastMode tuner_{config_, 2, stages_};
  Seconds time_ = 0;
  Candidate last_;
};

TEST_F(FastModeTest, AsksForOneCandidateAfterTheOtherWithOneGroup) {
  EXPECT_THAT(run(tuner_, 1),
              ElementsAre(ElementsAre("z0_gas1_tmbspg1"), ElementsAre("z0_gas1_tmbspg4"),
                          ElementsAre("z0_gas2_tmbspg2"), ElementsAre("z0_gas1_tmbspg3")));
  EXPECT_EQ(tuner_.best()->experiment.name, "z0_gas1_tmbspg4");
}

TEST_F(FastModeTest, FillsFreeGroupsAndRepeatsAloneWhatWasDisturbed) {
  EXPECT_THAT(run(tuner_, 3),
              ElementsAre(ElementsAre("z0_gas1_tmbspg1", "z0_gas1_tmbspg4", "z0_gas2_tmbspg2"),
                          ElementsAre("z0_gas1_tmbspg3"), ElementsAre("z0_gas1_tmbspg4_alone")));
  EXPECT_EQ(tuner_.best()->experiment.name, "z0_gas1_tmbspg4");
}

// Two trials: the smallest and the largest; the repetition comes on top.
TEST_F(FastModeTest, OfExactTiesTheSmallerStageStaysWhateverTheOrderOfTheMeasurements) {
  config_.stages = {0, 1, 2, 3};
  machine_.samples_per_s = [](const Point&) { return 10.0; };
  stages_ = plan_stages(config_, 2, machine_.predictor());
  std::set<std::string> bests;
  for (const int groups : {1, 2, 5}) {
    FastMode tuner(config_, 2, stages_);
    run(tuner, groups);
    bests.insert(tuner.best()->experiment.name);
  }

  EXPECT_THAT(bests, ElementsAre(testing::StartsWith("z0_"))) << "the same with any groups";
}

TEST_F(FastModeTest, CountsNoRepetitionAsATrial) {
  config_.autotuning.tuner_num_trials = 2;

  EXPECT_THAT(run(tuner_, 2), ElementsAre(ElementsAre("z0_gas1_tmbspg1", "z0_gas1_tmbspg4"),
                                          ElementsAre("z0_gas1_tmbspg4_alone")));
}

TEST_F(FastModeTest, ARepetitionIsAnExperimentOfItsOwn) {
  run(tuner_, 3);

  EXPECT_EQ(last_.name, "z0_gas1_tmbspg4_alone");
  EXPECT_EQ(last_.repetition, 1);
}

TEST_F(FastModeTest, AsksTheSameUntilItHasLearnt) {
  const auto first = names_of(tuner_.next(1));

  EXPECT_EQ(names_of(tuner_.next(1)), first);
  EXPECT_FALSE(tuner_.best());
  EXPECT_EQ(names_of(tuner_.next(1)), first);
}

TEST_F(FastModeTest, KnowsTheBestSoFarAtAnyTimeWithoutGoingAnotherWay) {
  const auto expected = run(tuner_, 3);
  FastMode curious(config_, 2, stages_);

  EXPECT_EQ(run(curious, 3, [&] { curious.best(); }), expected);
}

TEST_F(FastModeTest, CandidatesAreCompleteAndConsistent) {
  const Candidate first = tuner_.next(1).front();

  EXPECT_EQ(first.ds_config.json().at("train_batch_size"), 2);
  EXPECT_EQ(first.ds_config.json().at("train_micro_batch_size_per_gpu"), 1);
  EXPECT_EQ(first.ds_config.json().at("gradient_accumulation_steps"), 1);
  EXPECT_EQ(first.ds_config.json().at("zero_optimization").at("stage"), 0);
}

TEST_F(FastModeTest, AsksForNothingWhereNothingFits) {
  stages_.front().feasible = false;

  EXPECT_THAT(tuner_.next(1), IsEmpty());
  EXPECT_FALSE(tuner_.best());
}

}  // namespace
}  // namespace dstune::fast_mode_test
