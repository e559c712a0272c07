#include "core/search/tuners/report/search_outline.hpp"

#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "tests/support/simulated_machine.hpp"

namespace dstune::search_outline_test {
namespace {

using testing_support::make_tuning_config;
using testing_support::SimulatedMachine;

/// The formulas' memory, twice as much with overlap_comm.
class SearchOutlineTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.stages = {1, 2};
    config_.tuner = "guided";
    config_.micro_batches = {1, 2, 4};
    config_.deepspeed["zero_optimization"] = {{"overlap_comm", true}};
  }

  void add_list() {
    const Axis overlap{"/zero_optimization/overlap_comm", {true, false}};
    config_.space.all_stages = {{{overlap}}};
  }

  SearchOutline outline() {
    const MemoryPredictor predictor = [this](const Experiment& experiment, int rank) {
      return run(experiment, rank).outcome;
    };
    return outline_search(
        config_, 2, plan_stages(config_, 2, predictor),
        [this](const Experiment& experiment, int rank) { return run(experiment, rank); });
  }

  DryRun run(const Experiment& experiment, int rank) {
    ++dry_runs_;
    Outcome outcome = machine_.predictor()(experiment, rank);
    const bool overlaps = experiment.ds_config.at("zero_optimization").at("overlap_comm") == true;
    if (overlaps) std::get<Measured>(outcome).peak_memory.total *= 2;
    return {std::move(outcome), 0};
  }

  TuningConfig config_ = make_tuning_config(1000);
  SimulatedMachine machine_;
  int dry_runs_ = 0;
};

TEST_F(SearchOutlineTest, CountsWhatIsGenerated) {
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 6, 6}));

  add_list();
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 12, 12}));
}

TEST_F(SearchOutlineTest, IsBoundByTheTrialsOfEachStageInFullMode) {
  add_list();
  config_.autotuning.tuner_num_trials = 5;
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 12, 5}));

  config_.autotuning.fast = false;
  config_.tuner = "random";
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 12, 10}));
}

TEST_F(SearchOutlineTest, HasTheStagesThatFitWithSomeValueOfAList) {
  config_.settings.memory_limit = 250;  // overlapping, stage 1 needs 620 and stage 2 420
  EXPECT_EQ(outline(), SearchOutline{});

  add_list();
  EXPECT_EQ(outline(), (SearchOutline{{2}, 6, 6}));
}

TEST_F(SearchOutlineTest, TakesAFewDryRunsForAnySpace) {
  config_.micro_batches.clear();
  add_list();
  Axis many{"/zero_optimization/reduce_bucket_size", {}};
  for (int i = 1; i <= 1000; ++i) many.values.emplace_back(i * 1000);
  config_.space.all_stages.push_back({{std::move(many)}});

  EXPECT_GT(outline().configurations, 1000U);
  EXPECT_LT(dry_runs_, 200);
}

TEST_F(SearchOutlineTest, OfFastModeIsWhatItWouldExplore) {
  config_.tuner = "fast";
  EXPECT_EQ(outline(), (SearchOutline{{1, 2}, 6, 6}));
}

}  // namespace
}  // namespace dstune::search_outline_test
