#include "core/experiment/activation_checkpointing.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune::activation_checkpointing_test {
namespace {

using Unit = ActivationCheckpointing::Unit;

TEST(ActivationCheckpointing, HasOneFormForEachWay) {
  const std::pair<ActivationCheckpointing, json::value> forms[] = {
      {{}, false},
      {{.unit = Unit::layer}, true},
      {{.unit = Unit::layer, .count = 2}, "every_2_layers"},
      {{.unit = Unit::layer, .reentrant = true}, "every_1_layers_reentrant"},
      {{.unit = Unit::group, .count = 4}, "groups_of_4_layers"},
      {{.unit = Unit::group, .count = 4, .reentrant = true}, "groups_of_4_layers_reentrant"},
      {{.unit = Unit::group, .count = 12, .reentrant = true, .by_deepspeed = true},
       "groups_of_12_layers_by_deepspeed"}};
  for (const auto& [checkpointing, form] : forms) {
    EXPECT_EQ(to_json(checkpointing), form);
    EXPECT_EQ(activation_checkpointing_from_json(form), checkpointing) << json::serialize(form);
  }
}

TEST(ActivationCheckpointing, RefusesOtherForms) {
  for (const json::value& form :
       {json::value(1), json::value("every"), json::value("every_0_layers"),
        json::value("every_x_layers"), json::value("every_2"), json::value("of_2_layers"),
        json::value("every_1_layers_by_deepspeed"), json::value("every_2_layers_twice")}) {
    EXPECT_THROW(activation_checkpointing_from_json(form), std::invalid_argument)
        << json::serialize(form);
  }
}

TEST(ActivationCheckpointing, IsDescribedWithTheCallThatSwitchesItOn) {
  const auto both = [](const json::value& form) {
    const auto checkpointing = activation_checkpointing_from_json(form);
    return std::pair(describe(checkpointing), how_to_switch_on(checkpointing));
  };
  using Texts = std::pair<std::string, std::string>;

  EXPECT_EQ(both(false), Texts("off", ""));
  EXPECT_EQ(both(true),
            Texts("every layer", "model.gradient_checkpointing_enable({'use_reentrant': False})"));
  EXPECT_EQ(both("every_12_layers_reentrant"),
            Texts("every 12th layer, reentrant",
                  "model.gradient_checkpointing_enable({'use_reentrant': True}, "
                  "every_n_layers=12)"));
  EXPECT_EQ(both("groups_of_2_layers"),
            Texts("groups of 2 layers",
                  "torch.utils.checkpoint.checkpoint(..., use_reentrant=False) around 2 layers"));
  EXPECT_EQ(
      both("groups_of_1_layers_by_deepspeed"),
      Texts("each layer, by DeepSpeed", "deepspeed.checkpointing.checkpoint(...) around 1 layer"));
}

TEST(ActivationCheckpointing, OfAnExperimentIsInItsDstuneSection) {
  const auto step = [](const char* text) {
    return make_step_config(json::parse(text).as_object());
  };

  EXPECT_FALSE(step("{}").checkpointing.is_on());
  EXPECT_EQ(step(R"({"dstune": {"activation_checkpointing": true}})").checkpointing.unit,
            Unit::layer);
}

TEST(ActivationCheckpointing, SectionOfDeepSpeedCountsWhereItsFunctionIsCalled) {
  const auto step = [](const char* checkpointing, const char* section) {
    return make_step_config(json::object{
        {"dstune", json::object{{"activation_checkpointing", json::parse(checkpointing)}}},
        {"activation_checkpointing", json::parse(section)}});
  };
  constexpr const char* kByDeepSpeed = R"("groups_of_1_layers_by_deepspeed")";
  constexpr const char* kAll = R"({"partition_activations": true, "cpu_checkpointing": true,
      "contiguous_memory_optimization": true, "synchronize_checkpoint_boundary": true})";

  EXPECT_TRUE(step("true", kAll).unsupported.empty());
  EXPECT_FALSE(step("true", kAll).checkpoints_synchronize);
  EXPECT_TRUE(step(kByDeepSpeed, kAll).checkpoints_synchronize);
  EXPECT_TRUE(step(kByDeepSpeed, R"({"profile": true})").checkpoints_synchronize);
  EXPECT_EQ(step(kByDeepSpeed, kAll).unsupported,
            (std::vector<std::string>{"activation_checkpointing.cpu_checkpointing",
                                      "activation_checkpointing.contiguous_memory_optimization"}));
  EXPECT_TRUE(step(kByDeepSpeed, R"({"partition_activations": true})").unsupported.empty());
}

}  // namespace
}  // namespace dstune::activation_checkpointing_test
