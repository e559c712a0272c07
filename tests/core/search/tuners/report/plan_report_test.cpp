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
      HasSubstr("Beside these, as nvidia-smi shows it: about 872.16 MiB: 481.00 MiB CUDA context, "
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

/// Stage 1 with four buckets: one refused, two the same, one too large.
Pool small_pool() {
  SpaceParts parts;
  parts.stage = 1;
  parts.fixed = {{"zero_optimization", {{"stage", 1}}}};
  parts.axes = {{{{"/zero_optimization/reduce_bucket_size", {1, 2, 3, 4}, {}}}}};
  parts.points = {{1, 2, 1}};
  Pool pool;
  pool.spaces.push_back({Space(std::move(parts)), {0, 1, 1, 2}});
  pool.verdicts = {{FateKind::invalid, "because", {}, 0, 0},
                   {FateKind::pooled, "", "z1_tmbspg2_rbs2_gas1", 0, 1},
                   {FateKind::does_not_fit, "needs 5 B", "z1_tmbspg2_rbs4_gas1", 0, 3}};
  StageFunnel funnel;
  funnel.stage = 1;
  funnel.generated = 4;
  funnel.invalid["because"] = 1;
  funnel.same_effect = 1;
  funnel.does_not_fit = 1;
  pool.funnel.push_back(funnel);
  return pool;
}

TEST(FormatFunnel, CountsWhatIsLeftAfterEachStepAndByRule) {
  EXPECT_EQ(format_funnel(small_pool()),
            "| stage | generated | valid | distinct | fitting | to be tried |\n"
            "| ----: | --------: | ----: | -------: | ------: | ----------: |\n"
            "|     1 |         4 |     3 |        2 |       1 |           1 |\n"
            "stage 1: 1 invalid: because\n");
}

TEST(FormatFunnel, AddsUpTheStagesAndShowsWhatIsDominated) {
  Pool pool = small_pool();
  pool.funnel.push_back(pool.funnel[0]);
  pool.funnel[1].stage = 2;
  pool.funnel[1].does_not_fit = 0;
  pool.funnel[1].dominated = 1;

  EXPECT_THAT(format_funnel(pool),
              testing::HasSubstr(
                  "|   all |         8 |     6 |        4 |       3 |         1 |           2 |"));
}

TEST(AddFunnel, ListsEveryConfigurationWithItsFate) {
  json::object plan;

  add_funnel(plan, small_pool());

  EXPECT_EQ(
      to_json_text(plan.at("funnel"), 0),
      R"([{"stage":1,"generated":4,"invalid":{"because":1},"valid":3,"distinct":2,"fitting":1,)"
      R"("dominated":0,"to_be_tried":1}])");
  const json::array& all = plan.at("configurations").as_array();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(to_json_text(all[0], 0),
            R"({"name":"z1_tmbspg2_rbs1_gas1","space":"user","stage":1,"micro_batch":2,)"
            R"("accumulation_steps":1,"fate":"invalid","reason":"because"})");
  EXPECT_EQ(all[1].at("fate"), "to be tried");
  EXPECT_EQ(all[2].at("same_as"), "z1_tmbspg2_rbs2_gas1");
  EXPECT_EQ(all[3].at("fate"), "does not fit");
  EXPECT_EQ(all[3].at("reason"), "needs 5 B");
}

}  // namespace
}  // namespace dstune::plan_report_test
