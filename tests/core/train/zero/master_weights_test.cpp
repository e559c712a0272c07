// A weight of 1 in bf16 cannot move by less than 1/128; its master in fp32 does, step by step.
#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::master_weights_test {
namespace {

constexpr int kSteps = 8;
constexpr double kRate = 1e-5;  // Adam moves a weight by at most that in a step

struct Way {
  const char* name;
  const char* keys;
};

const Way kWays[] = {
    {"Stage0", R"({"zero_optimization": {"stage": 0}})"},
    {"Stage0Unfused", R"({"zero_optimization": {"stage": 0},
                          "optimizer": {"type": "Adam", "params": {"torch_adam": true}}})"},
    {"Stage1", R"({"zero_optimization": {"stage": 1}})"},
    {"Stage1Bf16Optimizer", R"({"zero_optimization": {"stage": 1},
                                "data_types": {"grad_accum_dtype": "fp32"}})"},
    {"Stage2", R"({"zero_optimization": {"stage": 2}})"},
    {"Stage3", R"({"zero_optimization": {"stage": 3}})"},
};

json::object config_of(const Way& way) {
  json::object config = parse_json(way.keys).as_object();
  config["bf16"] = {{"enabled", true}};
  config["train_micro_batch_size_per_gpu"] = 2;
  json::object& optimizer = config["optimizer"].is_object() ? config["optimizer"].get_object()
                                                            : config["optimizer"].emplace_object();
  if (!optimizer.contains("type")) optimizer["type"] = "AdamW";
  json::object& params = optimizer["params"].is_object() ? optimizer["params"].get_object()
                                                         : optimizer["params"].emplace_object();
  params["lr"] = kRate;
  params["weight_decay"] = 0;
  return config;
}

class MasterWeights : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Ways, MasterWeights, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name) + "Ranks2"; });

TEST_P(MasterWeights, MoveByLessThanBf16CanHold) {
  const auto start = test::run_training(config_of(GetParam()), 2, 0);

  const auto end = test::run_training(config_of(GetParam()), 2, kSteps);

  int scales = 0;
  for (std::size_t tensor = 0; tensor < start.parameters.size(); ++tensor) {
    const auto& before = start.parameters[tensor];
    if (!std::all_of(before.begin(), before.end(), [](float value) { return value == 1; }))
      continue;
    ++scales;  // of a LayerNorm
    for (const float value : end.parameters[tensor]) {
      EXPECT_NE(value, 1.0F);
      EXPECT_LT(std::abs(value - 1), kSteps * kRate * 1.01);
    }
  }
  EXPECT_EQ(scales, 5) << "two of each of two layers, and the last";
}

}  // namespace
}  // namespace dstune::master_weights_test
