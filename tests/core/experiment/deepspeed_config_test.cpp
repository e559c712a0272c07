#include "core/experiment/deepspeed_config.hpp"

#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::deepspeed_config_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(DeepSpeedConfig, KeepsItsJsonBesideTheStepThatItIsRead) {
  const DeepSpeedConfig config{{"zero_optimization", {{"stage", 2}}}, {"own_key", "kept"}};

  EXPECT_EQ(config.step().stage, 2);
  EXPECT_EQ(config.json().at("own_key"), "kept");
  EXPECT_THAT(config.fault(), IsEmpty());
}

TEST(DeepSpeedConfig, IsReadOnceForAllCopies) {
  const DeepSpeedConfig config{{"zero_optimization", {{"stage", 2}}}};
  const DeepSpeedConfig copy = config;

  EXPECT_EQ(&copy.step(), &config.step());
  EXPECT_EQ(&copy.json(), &config.json());
}

TEST(DeepSpeedConfig, SaysWhyThereIsNoStep) {
  const DeepSpeedConfig config{{"gradient_accumulation_steps", "many"}};

  EXPECT_THAT(config.fault(), HasSubstr("gradient_accumulation_steps"));
  EXPECT_THROW(static_cast<void>(config.step()), std::invalid_argument);
  EXPECT_EQ(config.json().size(), 1U);
}

TEST(DeepSpeedConfig, IsChangedAlone) {
  const DeepSpeedConfig config{{"zero_optimization", {{"stage", 2}}}};
  DeepSpeedConfig changed = config;

  changed.set("zero_optimization", {{"stage", 3}});

  EXPECT_EQ(changed.step().stage, 3);
  EXPECT_EQ(config.step().stage, 2);
}

TEST(DeepSpeedConfig, EqualsOneWithItsKeysInAnotherOrder) {
  const DeepSpeedConfig config{{"a", 1}, {"b", 2}};

  EXPECT_EQ(config, (DeepSpeedConfig{{"b", 2}, {"a", 1}}));
  EXPECT_NE(config, (DeepSpeedConfig{{"a", 1}}));
}

}  // namespace
}  // namespace dstune::deepspeed_config_test
