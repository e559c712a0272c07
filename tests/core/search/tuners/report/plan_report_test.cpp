#include "core/search/tuners/report/plan_report.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "tests/support/simulated_machine.hpp"

namespace dstune::plan_report_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_tuning_config;
using testing_support::SimulatedMachine;

TEST(FormatPlanJson, HoldsTheModelTheStagesAndTheExperiments) {
  const auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  const auto experiments = plan_experiments(config, 2, stages);

  const auto plan = json::parse(format_plan_json(config, 2, stages, experiments)).as_object();

  EXPECT_EQ(plan.at("num_params"), make_model_parameters(config.settings.model).total());
  EXPECT_EQ(plan.at("world_size"), 2);
  const auto& first = plan.at("stages").as_array().at(0).as_object();
  EXPECT_EQ(first.at("stage"), 0);
  EXPECT_EQ(first.at("memory_bytes_per_rank"), 400);
  EXPECT_EQ(first.at("activation_bytes_per_micro_batch"), 10);
  EXPECT_EQ(first.at("feasible"), false);
  const auto& smallest = plan.at("experiments").as_array().at(0).as_object();
  EXPECT_EQ(smallest.at("name"), "z1_gas1_tmbspg1");
  EXPECT_EQ(smallest.at("ds_config").as_object().at("train_batch_size"), 2);
}

TEST(FormatPlanTable, CountsWhatIsTrained) {
  auto config = make_tuning_config(400);
  config.settings.model.fine_tuning.trainable = {"*.bias"};
  const auto parameters = make_model_parameters(config.settings.model);

  const auto plan = json::parse(format_plan_json(config, 2, {}, {})).as_object();

  EXPECT_EQ(plan.at("num_params"), parameters.total());
  EXPECT_EQ(plan.at("trainable_num_params"), parameters.trainable_total());
  EXPECT_LT(parameters.trainable_total(), parameters.total());
}

TEST(FormatPlanTable, ShowsMemoryAndFeasibilityPerStage) {
  const auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());

  const auto table = format_plan_table(config, 2, stages, plan_experiments(config, 2, stages));

  EXPECT_THAT(table, HasSubstr("memory limit  400 B per rank"));
  EXPECT_THAT(table, ContainsRegex("\\| +0 \\|.* 400 B \\|.* 410 B \\| no +\\| +- \\|"));
  EXPECT_THAT(table, ContainsRegex("\\| +1 \\|.* 300 B \\|.* 310 B \\| yes +\\| +10 \\|"));
  EXPECT_THAT(table, HasSubstr("z1_gas1_tmbspg10"));
}

TEST(FormatPlanTable, NamesTheLossUnlessItIsTheUsualOne) {
  auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  EXPECT_THAT(format_plan_table(config, 2, stages, {}), Not(HasSubstr("loss ")));

  config.settings.loss = {.keep_logits = true};

  EXPECT_THAT(format_plan_table(config, 2, stages, {}),
              HasSubstr("loss          plain, logits kept\n"));
}

TEST(FormatPlanTable, HasNoNumbersForAStageThatIsNotModelled) {
  const auto config = make_tuning_config(400);
  auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  stages[2] = StagePlan{};
  stages[2].stage = 2;
  stages[2].unsupported = "not modelled: amp.enabled";

  const auto table = format_plan_table(config, 2, stages, {});

  EXPECT_THAT(table, ContainsRegex("\\| +2 \\|( +- \\|){7} no +\\| +- \\|"));
  EXPECT_THAT(table, HasSubstr("stage 2 cannot run: not modelled: amp.enabled"));
}

TEST(FormatPlanTable, SaysThatTheLimitIsNotKnown) {
  const auto config = make_tuning_config(0);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());

  EXPECT_THAT(format_plan_table(config, 2, stages, {}),
              HasSubstr("not known: every stage counts as feasible"));
}

}  // namespace
}  // namespace dstune::plan_report_test
