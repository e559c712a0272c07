#include "core/experiment/optimizer_config.hpp"

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"

namespace dstune::optimizer_config_test {
namespace {

using Names = std::vector<std::string>;

struct Read {
  OptimizerConfig optimizer;
  Names unsupported;
};

Read read(const char* text) {
  Read result;
  result.optimizer = read_optimizer_config(parse_json(text).as_object(), result.unsupported);
  return result;
}

OptimizerConfig supported(const char* text) {
  const Read result = read(text);
  EXPECT_EQ(result.unsupported, Names{}) << text;
  return result.optimizer;
}

Names unsupported(const char* text) { return read(text).unsupported; }

template <class Settings>
Settings settings(const char* text) {
  return std::get<Settings>(supported(text).settings);
}

TEST(ReadOptimizer, WithoutASectionIsTheTrainersAdamW) {
  const OptimizerConfig optimizer = supported("{}");

  EXPECT_TRUE(optimizer.client);
  EXPECT_TRUE(std::get<AdamSettings>(optimizer.settings).adam_w);
  EXPECT_FALSE(uses_fused_wrapper(optimizer));
}

TEST(ReadOptimizer, KnowsDeepSpeedsNamesInAnyCaseAndTorchsInTheirs) {
  EXPECT_TRUE(is<AdamSettings>(supported(R"({"optimizer": {"type": "ADAM"}})")));
  EXPECT_TRUE(is<LionSettings>(supported(R"({"optimizer": {"type": "lIon"}})")));
  EXPECT_TRUE(is<LambSettings>(supported(R"({"optimizer": {"type": "LAMB"}})")));
  EXPECT_TRUE(is<AdagradSettings>(supported(R"({"optimizer": {"type": "adagrad"}})")));
  EXPECT_TRUE(is<SgdSettings>(supported(R"({"optimizer": {"type": "SGD"}})")));
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "sgd"}})"), Names{"optimizer.type sgd"});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "Adamax"}})"), Names{"optimizer.type Adamax"});
}

TEST(ReadOptimizer, AdamDecaysAsAdamWUnlessToldOtherwise) {
  EXPECT_TRUE(settings<AdamSettings>(R"({"optimizer": {"type": "Adam"}})").adam_w);
  EXPECT_FALSE(
      settings<AdamSettings>(R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})")
          .adam_w);
  EXPECT_TRUE(settings<AdamSettings>(
                  R"({"optimizer": {"type": "AdamW", "params": {"adam_w_mode": false}}})")
                  .adam_w);
}

TEST(ReadOptimizer, OnlyDeepSpeedsOwnAdamHasTheFusedWrapper) {
  EXPECT_TRUE(uses_fused_wrapper(supported(R"({"optimizer": {"type": "AdamW"}})")));
  EXPECT_FALSE(uses_fused_wrapper(
      supported(R"({"optimizer": {"type": "AdamW", "params": {"torch_adam": true}}})")));
  EXPECT_FALSE(uses_fused_wrapper(supported(R"({"optimizer": {"type": "Lion"}})")));
}

TEST(ReadOptimizer, ReadsTheParametersOfEachType) {
  const auto sgd = settings<SgdSettings>(R"({"optimizer": {"type": "SGD", "params":
      {"momentum": 0.9, "dampening": 0.1, "nesterov": false}}})");
  const auto lamb = settings<LambSettings>(R"({"optimizer": {"type": "Lamb", "params":
      {"betas": [0.8, 0.9], "max_coeff": 3, "min_coeff": 0.5, "eps_inside_sqrt": true}}})");
  const auto adagrad = settings<AdagradSettings>(R"({"optimizer": {"type": "Adagrad", "params":
      {"lr_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-6}}})");

  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.dampening, 0.1);
  EXPECT_EQ(lamb.beta2, 0.9);
  EXPECT_EQ(lamb.max_ratio, 3);
  EXPECT_EQ(lamb.min_ratio, 0.5);
  EXPECT_TRUE(lamb.epsilon_inside_root);
  EXPECT_EQ(adagrad.lr_decay, 0.1);
  EXPECT_EQ(adagrad.initial_accumulator, 0.2);
  EXPECT_EQ(adagrad.epsilon, 1e-6);
}

TEST(ReadOptimizer, HasTheDefaultsOfItsClass) {
  const auto decay = [](const char* text) { return supported(text).weight_decay; };

  EXPECT_EQ(decay(R"({"optimizer": {"type": "AdamW"}})"), 0);
  EXPECT_EQ(decay(R"({"optimizer": {"type": "Adam", "params": {"torch_adam": true}}})"), 0.01);
  EXPECT_EQ(decay(R"({"optimizer": {"type": "Adam", "params":
                      {"torch_adam": true, "adam_w_mode": false}}})"),
            0);
  EXPECT_EQ(supported(R"({"optimizer": {"type": "Adagrad"}})").lr, 1e-2);
  EXPECT_EQ(supported(R"({"optimizer": {"type": "SGD"}})").lr, 1e-3);
  EXPECT_EQ(supported(R"({"optimizer": {"type": "SGD", "params": {"lr": 0.5}}})").lr, 0.5);
}

TEST(ReadOptimizer, NamesOtherPassesOfTheSameOptimizer) {
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "AdamW", "params": {"amsgrad": true}}})"),
            Names{"optimizer.params.amsgrad"});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "SGD", "params": {"foreach": false}}})"),
            Names{"optimizer.params.foreach"});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "SGD", "params": {"fused": false}}})"), Names{});
}

TEST(ReadOptimizer, NamesWhatDeepSpeedHasNotTestedWithZero) {
  const Names refused = {"optimizer.type SGD with ZeRO without zero_allow_untested_optimizer"};

  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 1}})"),
            refused);
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 0}})"),
            Names{});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "SGD"}, "zero_optimization": {"stage": 3},
                            "zero_allow_untested_optimizer": true})"),
            Names{});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "Lion"}, "zero_optimization": {"stage": 1}})"),
            Names{});
}

TEST(ReadOptimizer, NamesWhereLambCannotRun) {
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "Lamb"}, "fp16": {"loss_scale": 8}})"),
            Names{"optimizer.type Lamb with a static fp16.loss_scale"});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "Lamb"}, "bf16": {"enabled": true}})"),
            Names{"optimizer.type Lamb in bf16 without ZeRO"});
  EXPECT_EQ(unsupported(R"({"optimizer": {"type": "Lamb"}, "bf16": {"enabled": true},
                            "zero_optimization": {"stage": 2},
                            "zero_allow_untested_optimizer": true})"),
            Names{});
}

TEST(StateTensors, AreThoseOfTheType) {
  EXPECT_EQ(state_tensors(supported(R"({"optimizer": {"type": "AdamW"}})")), 2);
  EXPECT_EQ(state_tensors(supported(R"({"optimizer": {"type": "Lamb"}})")), 2);
  EXPECT_EQ(state_tensors(supported(R"({"optimizer": {"type": "Lion"}})")), 1);
  EXPECT_EQ(state_tensors(supported(R"({"optimizer": {"type": "Adagrad"}})")), 1);
  EXPECT_EQ(state_tensors(supported(R"({"optimizer": {"type": "SGD"}})")), 0);
  EXPECT_EQ(
      state_tensors(supported(R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9}}})")),
      1);
}

TEST(UnusedState, IsAdagradsWhereDeepSpeedMakesItAnew) {
  const OptimizerConfig adagrad = supported(R"({"optimizer": {"type": "Adagrad"}})");

  EXPECT_FALSE(leaves_unused_state(adagrad, 0, DType::fp32));
  EXPECT_TRUE(leaves_unused_state(adagrad, 0, DType::bf16));
  EXPECT_TRUE(leaves_unused_state(adagrad, 2, DType::fp32));
  EXPECT_FALSE(leaves_unused_state(adagrad, 3, DType::fp16));
  EXPECT_FALSE(leaves_unused_state(supported("{}"), 2, DType::fp32));
}

}  // namespace
}  // namespace dstune::optimizer_config_test
