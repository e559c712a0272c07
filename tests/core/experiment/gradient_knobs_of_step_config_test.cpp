// What a configuration may say about gradients, stage by stage.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune::gradient_knobs_of_step_config_test {
namespace {

using Names = std::vector<std::string>;

// What stages 0 to 2 model and stage 3 does not.
TEST(StepConfig, NamesGradientKnobsInStage3Alone) {
  struct Knob {
    const char* json;
    const char* name;
  };
  const Knob knobs[] = {
      {R"({"gradient_allreduce_op": "sum"})", "gradient_allreduce_op"},
      {R"({"gradient_predivide_factor": 2, "zero_optimization": {"reduce_scatter": false}})",
       "gradient_predivide_factor"}};
  for (const Knob& knob : knobs) {
    for (const int stage : {0, 1, 2, 3}) {
      json::object config = parse_json(knob.json).as_object();
      json::value& zero = config["zero_optimization"];
      if (!zero.is_object()) zero.emplace_object();
      zero.get_object()["stage"] = stage;

      const Names names = make_step_config(config).unsupported;

      EXPECT_EQ(names, stage == 3 ? Names{knob.name} : Names{}) << knob.json << stage;
    }
  }
}

TEST(StepConfig, NamesOffloadingWhereDeepSpeedDoesNotIgnoreIt) {
  const auto named = [](int stage, const char* key) {
    return make_step_config({{"zero_optimization", {{"stage", stage}, {key, {{"device", "cpu"}}}}}})
        .unsupported;
  };
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(named(stage, "offload_optimizer"),
              stage > 0 ? Names{} : Names{"zero_optimization.offload_optimizer"});
    EXPECT_EQ(named(stage, "offload_param"), Names{});
  }
  EXPECT_EQ(make_step_config({{"zero_optimization",
                               {{"stage", 0}, {"offload_optimizer", {{"device", "none"}}}}}})
                .unsupported,
            Names{});
}

TEST(StepConfig, NamesAccumulationTypesWhereThereIsNoWayForThem) {
  const auto named = [](int stage, bool contiguous, const char* release = "0.19.8") {
    return make_step_config(
               {{"fp16", {{"enabled", true}}},
                {"data_types", {{"grad_accum_dtype", "fp32"}}},
                {"dstune", {{"deepspeed_version", release}}},
                {"zero_optimization", {{"stage", stage}, {"contiguous_gradients", contiguous}}}})
        .unsupported;
  };
  const Names name = {"data_types.grad_accum_dtype"};

  EXPECT_EQ(named(0, true), name);
  EXPECT_EQ(named(1, true), Names{});
  EXPECT_EQ(named(1, false), Names{});
  EXPECT_EQ(named(1, false, "0.19.7"), name);
  EXPECT_EQ(named(2, true), Names{});
  EXPECT_EQ(named(2, false), Names{});
}

TEST(StepConfig, HasSumsInThePartitionWhere16BitsAreAddedUpInFp32) {
  const auto has = [](int stage, const char* precision, const char* sums, const char* device,
                      const char* release) {
    return make_step_config({{precision, {{"enabled", true}}},
                             {"data_types", {{"grad_accum_dtype", sums}}},
                             {"dstune", {{"deepspeed_version", release}}},
                             {"zero_optimization",
                              {{"stage", stage}, {"offload_optimizer", {{"device", device}}}}}})
        .sums_in_partition();
  };
  EXPECT_TRUE(has(2, "bf16", "fp32", "none", "0.19.8"));
  EXPECT_TRUE(has(1, "fp16", "fp32", "none", "0.19.8"));
  EXPECT_FALSE(has(1, "bf16", "fp32", "none", "0.19.8")) << "the BF16 optimizer";
  EXPECT_TRUE(has(1, "bf16", "fp32", "cpu", "0.19.8"));
  EXPECT_FALSE(has(2, "bf16", "bf16", "none", "0.19.8"));
  EXPECT_FALSE(has(2, "fp16", "bf16", "none", "0.19.8"));
  EXPECT_FALSE(has(3, "bf16", "fp32", "none", "0.19.8"));
  EXPECT_FALSE(has(2, "bf16", "fp32", "none", "0.19.7"));
}

// int((1 - ratio) * n), where (1 - 0.9) * 10 is less than 1, and (1 - 0.7) * 10 more than 3.
TEST(StepConfig, LeavesSubGroupsOnTheDeviceAsDeepSpeedRoundsThem) {
  const auto left = [](double ratio, std::size_t of) {
    return make_step_config(
               {{"zero_optimization",
                 {{"stage", 3}, {"offload_optimizer", {{"device", "cpu"}, {"ratio", ratio}}}}}})
        .sub_groups_on_device(of);
  };
  EXPECT_EQ(left(0.5, 1), 0U);
  EXPECT_EQ(left(0.5, 11), 5U);
  EXPECT_EQ(left(0.9, 10), 0U);
  EXPECT_EQ(left(0.7, 10), 3U);
  EXPECT_EQ(left(0, 3), 3U);
  EXPECT_EQ(left(1, 3), 0U);
}

TEST(StepConfig, SelectsTheBf16OptimizerInStage1WithFp32SumsAlone) {
  const auto selected = [](int stage, const char* precision, const char* sums) {
    return make_step_config({{precision, {{"enabled", true}}},
                             {"data_types", {{"grad_accum_dtype", sums}}},
                             {"zero_optimization", {{"stage", stage}}}})
        .uses_bf16_optimizer();
  };

  EXPECT_TRUE(selected(1, "bf16", "fp32"));
  EXPECT_FALSE(selected(1, "bf16", "bf16"));
  EXPECT_FALSE(selected(1, "fp16", "fp32"));
  EXPECT_FALSE(selected(2, "bf16", "fp32"));
}

TEST(StepConfig, NamesEarlyDivisionWhereDeepSpeedRefusesIt) {
  const auto divided = [](int stage, bool reduce_scatter, const char* key, const json::value& to) {
    return make_step_config(
               {{key, to},
                {"zero_optimization", {{"stage", stage}, {"reduce_scatter", reduce_scatter}}}})
        .unsupported;
  };
  const auto prescaled = [&](int stage, bool reduce_scatter) {
    return divided(stage, reduce_scatter, "prescale_gradients", true);
  };
  const auto predivided = [&](int stage, bool reduce_scatter) {
    return divided(stage, reduce_scatter, "gradient_predivide_factor", 2);
  };

  EXPECT_EQ(prescaled(1, true), Names{});
  EXPECT_EQ(prescaled(2, true), Names{"prescale_gradients"});
  EXPECT_EQ(prescaled(3, true), Names{"prescale_gradients"});
  EXPECT_EQ(prescaled(2, false), Names{});
  EXPECT_EQ(predivided(0, true), Names{});
  EXPECT_EQ(predivided(1, true), Names{});
  EXPECT_EQ(predivided(2, true), Names{"gradient_predivide_factor"});
  EXPECT_EQ(predivided(2, false), Names{});
}

}  // namespace
}  // namespace dstune::gradient_knobs_of_step_config_test
