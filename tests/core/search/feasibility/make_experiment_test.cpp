#include "core/search/feasibility/make_experiment.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::make_experiment_test {
namespace {

TuningConfig make_config(const char* deepspeed) {
  TuningConfig config;
  config.deepspeed = json::parse(deepspeed).as_object();
  return config;
}

TEST(MakeExperiment, IsNamedAsDeepSpeedNamesTheMicroBatchPhase) {
  EXPECT_EQ(make_experiment({}, 2, 2, 4, 1).name, "z2_gas1_tmbspg4");
  EXPECT_EQ(make_experiment({}, 2, 0, 16, 8).name, "z0_gas8_tmbspg16");
}

TEST(MakeExperiment, WritesAConsistentBatchForTheGroup) {
  const auto experiment = make_experiment({}, 3, 1, 4, 5);

  EXPECT_EQ(experiment.ranks, 3);
  EXPECT_EQ(to_json_text(experiment.ds_config.json(), 0),
            R"({"train_batch_size":60,"train_micro_batch_size_per_gpu":4,)"
            R"("gradient_accumulation_steps":5,"zero_optimization":{"stage":1}})");
}

TEST(MakeExperiment, KeepsTheUsersSettingsInTheirOrder) {
  const auto config =
      make_config(R"({"optimizer":{"type":"AdamW"},)"
                  R"("zero_optimization":{"reduce_bucket_size":5000,"overlap_comm":false},)"
                  R"("bf16":{"enabled":true},"wandb":{"x":1}})");

  const auto experiment = make_experiment(config, 1, 3, 1, 1);

  EXPECT_EQ(to_json_text(experiment.ds_config.json(), 0),
            R"({"train_batch_size":1,"train_micro_batch_size_per_gpu":1,)"
            R"("gradient_accumulation_steps":1,"optimizer":{"type":"AdamW"},)"
            R"("zero_optimization":{"stage":3,"reduce_bucket_size":5000,"overlap_comm":false},)"
            R"("bf16":{"enabled":true},"wandb":{"x":1}})");
}

TEST(MakeExperiment, ReplacesWhatTheSearchChooses) {
  const auto config = make_config(
      R"({"train_batch_size":7,"zero_optimization":{"stage":0,"contiguous_gradients":true}})");

  const auto experiment = make_experiment(config, 2, 1, 8, 1);

  EXPECT_EQ(to_json_text(experiment.ds_config.json(), 0),
            R"({"train_batch_size":16,"train_micro_batch_size_per_gpu":8,)"
            R"("gradient_accumulation_steps":1,)"
            R"("zero_optimization":{"stage":1,"contiguous_gradients":true}})");
}

TEST(SearchPoint, TakesTheUsersAccumulationSteps) {
  TuningConfig config;
  config.accumulation_steps = 4;

  EXPECT_EQ(search_point(config, 2, 1, 8), (Point{1, 8, 4}));
}

TEST(SearchPoint, NeverExceedsTheLargestTrainBatch) {
  TuningConfig config;
  config.accumulation_steps = 4;
  config.autotuning.max_train_batch_size = 32;

  EXPECT_EQ(search_point(config, 2, 1, 8), (Point{1, 8, 2}));
  EXPECT_EQ(search_point(config, 2, 1, 2), (Point{1, 2, 4}));
  EXPECT_EQ(largest_allowed_micro_batch(config, 2), 16);
}

TEST(LargestAllowedMicroBatch, IsTheUsersLimit) {
  TuningConfig config;
  config.autotuning.max_train_micro_batch_size_per_gpu = 12;

  EXPECT_EQ(largest_allowed_micro_batch(config, 2), 12);
}

}  // namespace
}  // namespace dstune::make_experiment_test
