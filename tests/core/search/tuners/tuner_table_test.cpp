#include "core/search/tuners/tuner_table.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "tests/support/pool_search.hpp"
#include "tests/support/simulated_machine.hpp"

namespace dstune::tuner_table_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_pool;
using testing_support::make_record;
using testing_support::make_tuning_config;
using testing_support::point_of;
using testing_support::Row;
using testing_support::run_tuning;
using testing_support::SimulatedMachine;
using testing_support::TableForecaster;

TEST(TunerName, IsGuidedUnlessATunerIsNamed) {
  TuningConfig config;
  EXPECT_EQ(tuner_name(config), "guided");

  config.autotuning.fast = false;
  EXPECT_EQ(tuner_name(config), "guided");

  config.autotuning.tuner_type = "random";
  config.autotuning.tuner_type_given = true;
  EXPECT_EQ(tuner_name(config), "random");

  config.autotuning.fast = true;
  EXPECT_EQ(tuner_name(config), "random");

  config.tuner = "fast";
  EXPECT_EQ(tuner_name(config), "fast");
}

TEST(MakeTuner, RefusesAnUnknownName) {
  TuningConfig config = make_tuning_config(460);
  config.tuner = "clairvoyant";
  const SimulatedMachine machine;
  const auto stages = plan_stages(config, 2, machine.predictor());

  EXPECT_THROW(make_tuner(default_parts(config, 2, stages, machine.predictor(), make_dry_runner())),
               std::invalid_argument);
}

TEST(DefaultParts, PoolEveryMicroBatchWhereTheMemoryLimitIsNotKnown) {
  TuningConfig config = make_tuning_config(0);
  config.stages = {2};
  config.autotuning.max_train_micro_batch_size_per_gpu = 4;
  config.settings.memory_limit = 0;
  const auto predictor = make_memory_predictor();
  const auto stages = plan_stages(config, 2, predictor);

  const auto parts = default_parts(config, 2, stages, predictor, make_dry_runner());

  std::set<std::int64_t> sizes;
  for (const auto& pooled : parts.make_pool(stages, {}).candidates) {
    sizes.insert(pooled.point.micro_batch);
  }
  EXPECT_THAT(sizes, ElementsAre(1, 2, 3, 4));
}

class TuneWith : public testing::TestWithParam<const char*> {};

TEST_P(TuneWith, FindsTheBestOfStagesAndMicroBatches) {
  SimulatedMachine machine;
  machine.samples_per_s = [](const Point& point) {
    return point.stage == 2 && point.micro_batch == 12 ? 150.0 : 100.0;
  };
  auto config = make_tuning_config(400 + 4 * 10);
  config.tuner = GetParam();
  config.autotuning.tuner_early_stopping = 1000;
  config.autotuning.tuner_num_trials = 1000;
  config.stop_at_chance = 0;

  const auto run = run_tuning(config, machine);

  EXPECT_EQ(run.best, "z2_gas2_tmbspg12");
  EXPECT_THAT(run.started, Contains("z2_gas2_tmbspg12_again1"));
  EXPECT_THAT(run.result.remarks.front(), HasSubstr(concat(GetParam(), " tried all ")));
}

INSTANTIATE_TEST_SUITE_P(Tuners, TuneWith,
                         testing::Values("gridsearch", "random", "model_based", "guided"));

TEST(Tune, AFixedBatchIsKeptExactlyInEveryExperiment) {
  auto config = make_tuning_config(460);
  config.tuner = "guided";
  config.objective = {{}, true, 24, 0};  // 12 samples on each of two ranks

  const auto run = run_tuning(config, SimulatedMachine());

  ASSERT_GT(run.result.records.size(), 5U);
  std::set<std::int64_t> micro_batches;
  for (const auto& record : run.result.records) {
    const Point point = point_of(record.experiment);
    EXPECT_EQ(point.micro_batch * point.accumulation_steps * 2, 24) << record.experiment.name;
    micro_batches.insert(point.micro_batch);
  }
  EXPECT_THAT(micro_batches, testing::IsSubsetOf({1, 2, 3, 4, 6, 12}));
}

/// fast: false: every stage has a space of two configurations beside its micro-batches.
class FullModeTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.autotuning.fast = false;
    config_.tuner = "gridsearch";
    config_.stages = {0, 1, 2};
    machine_.samples_per_s = [](const Point& point) { return 100.0 + 10.0 * point.stage; };
  }

  /// Names in order. What is called good in a space makes 200 samples/s, other things there 50.
  std::vector<std::string> run() {
    const auto stages = plan_stages(config_, 2, machine_.predictor());
    const auto tuner = make_tuner(
        {config_, 2, stages,
         [&](const std::vector<StagePlan>& plans, const std::vector<std::int64_t>& sizes) {
           micro_batches_.push_back(sizes);
           const int stage = plans.front().stage;
           const std::string name = "space" + std::to_string(stage);
           return make_pool({{name + "plain", stage}, {name + "good", stage}});
         },
         [] { return std::unique_ptr<Forecaster>(); }});
    std::vector<std::string> names;
    for (auto batch = tuner->next(1); !batch.empty(); batch = tuner->next(1)) {
      const Candidate& asked = batch.front();
      names.push_back(asked.name);
      Record record = make_record(asked, asked.name.find("good") < 20 ? 1 / 200.0 : 1 / 50.0, 0);
      if (asked.name.starts_with("z")) {
        record.outcome = machine_.run(make_experiment(config_, 2, asked));
      }
      tuner->learn(record);
    }
    best_ = tuner->best()->experiment.name;
    remarks_ = tuner->remarks();
    return names;
  }

  TuningConfig config_ = make_tuning_config(400 + 4 * 10);
  SimulatedMachine machine_;
  std::vector<std::vector<std::int64_t>> micro_batches_;
  std::string best_;
  std::vector<std::string> remarks_;
};

TEST_F(FullModeTest, SearchesEachStagesSpaceAfterItsMicroBatches) {
  const auto names = run();

  std::vector<std::string> kinds;
  for (const auto& name : names) {
    const auto kind = name.substr(0, name[0] == 's' ? 6 : 2);
    if (kinds.empty() || kinds.back() != kind) kinds.push_back(kind);
  }
  kinds.resize(5);  // then the confirmation
  EXPECT_THAT(kinds, ElementsAre("z0", "z1", "space1", "z2", "space2")) << "stage 0 has none";
  EXPECT_EQ(best_, "space1good");
  EXPECT_THAT(micro_batches_, ElementsAre(ElementsAre(4, 7, 14), ElementsAre(14, 24)));
  EXPECT_THAT(remarks_, Contains("stage 1: gridsearch tried all 2 configurations"));
}

TEST_F(FullModeTest, SearchesTheSpaceOfAStageWhoseOwnSettingsDoNotFit) {
  config_.settings.memory_limit = 250;  // stages 0 and 1 need more

  const auto names = run();

  EXPECT_THAT(names.front(), HasSubstr("space1"));
  EXPECT_THAT(micro_batches_, ElementsAre(ElementsAre(), Not(ElementsAre())));
  EXPECT_EQ(best_, "space1good");
}

TEST_F(FullModeTest, LeavesOutTheSpaceOfAStageThatIsClearlyWorse) {
  machine_.samples_per_s = [](const Point& point) { return 100.0 - 10.0 * point.stage; };

  run();

  EXPECT_TRUE(micro_batches_.empty());
  EXPECT_THAT(best_, HasSubstr("z0_"));
}

}  // namespace
}  // namespace dstune::tuner_table_test
