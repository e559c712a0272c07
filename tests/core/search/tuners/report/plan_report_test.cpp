#include "core/search/tuners/report/plan_report.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/simulated_machine.hpp"

namespace dstune::plan_report_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_tuning_config;
using testing_support::SimulatedMachine;

const Machine kTwoRanks{.group_size = 2, .backend = "sim"};

TEST(FormatPlanJson, HoldsTheModelTheStagesAndTheExperiments) {
  const auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  const auto experiments = plan_experiments(config, 2, stages);

  const auto plan =
      json::parse(format_plan_json(config, kTwoRanks, stages, experiments)).as_object();

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

TEST(FormatPlanTable, SaysOnceWhatARatioComesTo) {
  auto config = make_tuning_config(400);
  Experiment experiment;
  experiment.ranks = 2;
  experiment.settings.model = config.settings.model;
  experiment.ds_config =
      json::object{{"optimizer", {{"type", "AdamW"}}},
                   {"zero_optimization",
                    {{"stage", 3}, {"offload_optimizer", {{"device", "cpu"}, {"ratio", 0.5}}}}}};
  const std::string table = format_plan_table(config, kTwoRanks, {}, {experiment, experiment});

  const std::size_t first = table.find("offload_optimizer.ratio 0.5 leaves 0 of");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(table.find("offload_optimizer.ratio", first + 1), std::string::npos);
}

TEST(FormatPlanTable, CountsWhatIsTrained) {
  auto config = make_tuning_config(400);
  config.settings.model.fine_tuning.trainable = {"*.bias"};
  const auto parameters = make_model_parameters(config.settings.model);

  const auto plan = json::parse(format_plan_json(config, kTwoRanks, {}, {})).as_object();

  EXPECT_EQ(plan.at("num_params"), parameters.total());
  EXPECT_EQ(plan.at("trainable_num_params"), parameters.trainable_total());
  EXPECT_LT(parameters.trainable_total(), parameters.total());
}

TEST(FormatPlanTable, ShowsWhatMayBeInFlightAndWhatIsBesideThePlan) {
  auto config = make_tuning_config(400);
  auto stages = plan_stages(config, 2, SimulatedMachine().predictor());

  const auto without = format_plan_table(config, kTwoRanks, stages, {});

  EXPECT_THAT(without, Not(HasSubstr("in flight")));
  EXPECT_THAT(without, Not(HasSubstr("nvidia-smi"))) << "on CPUs";

  stages[1].peak.allocated = Bytes{3} << 30U;
  stages[1].peak.active = Bytes{4} << 30U;
  config.settings.backend = "cuda";
  const auto table = format_plan_table(config, kTwoRanks, stages, {});
  const auto plan = json::parse(format_plan_json(config, kTwoRanks, stages, {})).as_object();

  EXPECT_THAT(table, HasSubstr(" peak | in flight |"));
  EXPECT_THAT(table, HasSubstr("| 3.00 GiB |  1.00 GiB |"));
  EXPECT_THAT(
      table,
      HasSubstr("In addition, as nvidia-smi shows: about 872.16 MiB: 481.00 MiB CUDA context, "
                "326.16 MiB NCCL, 65.00 MiB cuBLAS workspaces\n"));
  EXPECT_EQ(plan.at("stages").as_array().at(1).as_object().at("peak_active_bytes"),
            Bytes{4} << 30U);
  EXPECT_EQ(plan.at("memory_beside_plan_bytes"), (Bytes{481 + 65} << 20U) + 342'000'000);
  config.settings.product_workspace.of_products = 1;
  EXPECT_THAT(format_plan_table(config, kTwoRanks, stages, {}), Not(HasSubstr("cuBLAS")))
      << "the peaks have them";
}

TEST(FormatPlanTable, ShowsWhatIsForetoldOfTheFirstExperiments) {
  const auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  auto experiments = plan_experiments(config, 2, stages);
  experiments.resize(2);
  const Foretold foretold{"48 measurements in here", {Prediction{0.5, 0}, std::nullopt}};

  const auto table = format_plan_table(config, kTwoRanks, stages, experiments, nullptr, &foretold);
  const auto plan =
      json::parse(format_plan_json(config, kTwoRanks, stages, experiments, nullptr, &foretold))
          .as_object();

  EXPECT_THAT(table,
              ContainsRegex("z1_gas1_tmbspg1 .* 500.0 ms \\| 500.0 ms, 500.0 ms \\| +4.0 \\|"));
  EXPECT_THAT(table, ContainsRegex("\\| +- \\| +- \\| +- \\|"));
  EXPECT_THAT(table, HasSubstr("Steps as predicted from 48 measurements in here"));
  const auto& listed = plan.at("experiments").as_array();
  EXPECT_EQ(listed.at(0).as_object().at("predicted_step_time_s"), 0.5);
  EXPECT_EQ(listed.at(0).as_object().at("predicted_interval_90_s").as_array().size(), 2U);
  EXPECT_FALSE(listed.at(1).as_object().contains("predicted_step_time_s"));
  EXPECT_THAT(format_plan_table(config, kTwoRanks, stages, experiments),
              Not(HasSubstr("predicted")));
}

TEST(FormatPlanTable, SaysWhereALimitIsFromThatIsNotTheUsers) {
  auto config = make_tuning_config(400);
  Machine machine = kTwoRanks;
  const auto json_of = [&] {
    return json::parse(format_plan_json(config, machine, {}, {})).as_object();
  };
  EXPECT_EQ(json_of().at("memory_limit_bytes"), 400);
  EXPECT_FALSE(json_of().contains("memory_limit_origin")) << "the user's";

  machine.memory_limit_origin = "800 B free on Some GPU of this machine, less 300 B kernels";
  config.objective.memory_headroom = 100;
  const std::string origin =
      "800 B free on Some GPU of this machine, less 300 B kernels, 100 B memory_headroom";

  EXPECT_EQ(text_at(json_of(), "memory_limit_origin"), origin);
  EXPECT_THAT(format_plan_table(config, machine, {}, {}),
              HasSubstr("memory limit  400 B per rank: " + origin + "\n"));

  config.settings.memory_limit = 0;
  EXPECT_FALSE(json_of().contains("memory_limit_bytes")) << "not known";
}

TEST(FormatPlanTable, ShowsMemoryAndFeasibilityPerStage) {
  const auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());

  const auto table =
      format_plan_table(config, kTwoRanks, stages, plan_experiments(config, 2, stages));

  EXPECT_THAT(table, HasSubstr("memory limit  400 B per rank"));
  EXPECT_THAT(table, ContainsRegex("\\| +0 \\|.* 400 B \\|.* 410 B \\| no +\\| +- \\|"));
  EXPECT_THAT(table, ContainsRegex("\\| +1 \\|.* 300 B \\|.* 310 B \\| yes +\\| +10 \\|"));
  EXPECT_THAT(table, HasSubstr("z1_gas1_tmbspg10"));
}

TEST(FormatPlanTable, NamesTheLossUnlessItIsTheUsualOne) {
  auto config = make_tuning_config(400);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  EXPECT_THAT(format_plan_table(config, kTwoRanks, stages, {}), Not(HasSubstr("loss ")));

  config.settings.loss = {.keep_logits = true};

  EXPECT_THAT(format_plan_table(config, kTwoRanks, stages, {}),
              HasSubstr("loss          plain, logits kept\n"));
}

TEST(FormatPlanTable, NamesTheStoresThatAreTooSmallAndByHowMuch) {
  auto config = make_tuning_config(400);
  config.settings.host_memory_limit = 1000;
  auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  StagePlan& last = stages.back();
  last.peak_host = {.at_peak = {}, .held = 500, .drive = 301, .pinned = 201};
  EXPECT_THAT(format_plan_table(config, kTwoRanks, stages, {}),
              HasSubstr("drive         not known: dstune.drive_limit sets what a node has\n"));
  config.settings.pinned_limit = 200;
  config.settings.drive_limit = 300;
  last.shortages = host_shortages(last.peak_host, config.settings);

  const auto table = format_plan_table(config, kTwoRanks, stages, {});
  const auto plan = json::parse(format_plan_json(config, kTwoRanks, stages, {})).as_object();

  EXPECT_THAT(table, HasSubstr("pinned memory 200 B per rank\ndrive         300 B per rank\n"));
  EXPECT_THAT(table, ContainsRegex("\\| +host \\| +drive \\|"));
  EXPECT_THAT(table, ContainsRegex("\\| +500 B \\| +301 B \\|"));
  EXPECT_THAT(table, HasSubstr("stage 3 does not fit into pinned memory: a rank needs 201 B of "
                               "200 B\nstage 3 does not fit into the drive: a rank needs 301 B of "
                               "300 B\n"));
  EXPECT_EQ(plan.at("pinned_limit_bytes"), 200);
  EXPECT_EQ(plan.at("drive_limit_bytes"), 300);
  const auto& stage = plan.at("stages").as_array().back().as_object();
  EXPECT_EQ(stage.at("fits_on_host"), false);
  EXPECT_EQ(stage.at("shortages"),
            json::value({{{"tier", "pinned"}, {"needed_bytes", 201U}, {"limit_bytes", 200U}},
                         {{"tier", "drive"}, {"needed_bytes", 301U}, {"limit_bytes", 300U}}}));
}

TEST(FormatPlanTable, HasNoNumbersForAStageThatIsNotModelled) {
  const auto config = make_tuning_config(400);
  auto stages = plan_stages(config, 2, SimulatedMachine().predictor());
  stages[2] = StagePlan{};
  stages[2].stage = 2;
  stages[2].unsupported = "not modelled: amp.enabled";

  const auto table = format_plan_table(config, kTwoRanks, stages, {});

  EXPECT_THAT(table, ContainsRegex("\\| +2 \\|( +- \\|){7} no +\\| +- \\|"));
  EXPECT_THAT(table, HasSubstr("stage 2 cannot run: not modelled: amp.enabled"));
}

TEST(FormatPlanTable, SaysThatTheLimitIsNotKnown) {
  const auto config = make_tuning_config(0);
  const auto stages = plan_stages(config, 2, SimulatedMachine().predictor());

  EXPECT_THAT(format_plan_table(config, kTwoRanks, stages, {}),
              HasSubstr("not known: every stage counts as feasible"));
}

}  // namespace
}  // namespace dstune::plan_report_test
