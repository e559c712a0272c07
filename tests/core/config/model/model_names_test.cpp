#include "core/config/model/model_names.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/model/hub_cache.hpp"
#include "core/model/hub_names.hpp"

namespace dstune::model_names_test {
namespace {

using testing::HasSubstr;

TEST(HubNames, HaveEachPresetOnceAndNoOther) {
  std::vector<std::string> presets;
  for (const HubNames& row : hub_names()) presets.emplace_back(row.preset);

  EXPECT_THAT(presets, testing::UnorderedElementsAreArray(model_presets()));
}

TEST(HubNames, AreNamesOfTheHubThatMeanOnePreset) {
  std::set<std::string_view> seen;
  for (const HubNames& row : hub_names()) {
    ASSERT_FALSE(row.each().empty()) << row.preset;
    for (const std::string_view name : row.each()) {
      EXPECT_TRUE(is_hub_name(name)) << name;
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(find_hub_preset(name).preset, row.preset) << name;
    }
  }
  EXPECT_EQ(find_hub_preset("META-LLAMA/llama-3.1-8b").hub_name, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(find_hub_preset("meta-llama/Llama-3.1-9B").preset, "");
}

TEST(NearModels, AreSlipsOfThePen) {
  EXPECT_EQ(near_models("Qwen/Qwen2.5-7B-Instuct"), "; did you mean \"Qwen/Qwen2.5-7B-Instruct\"?");
  EXPECT_EQ(near_models("meta/Llama-3.1-8B"), "; did you mean \"meta-llama/Llama-3.1-8B\"?");
  EXPECT_EQ(near_models("Qwen2.5-7B-Instruct"), "; did you mean \"Qwen/Qwen2.5-7B-Instruct\"?");
  EXPECT_EQ(near_models("Qwen2.5-7B"), "; did you mean \"qwen2.5-7b\"?");
}

TEST(NearModels, AreOfTheSameFamilyWhereTheSizeIsUnknown) {
  EXPECT_THAT(near_models("Qwen/Qwen2.5-9B"),
              testing::AllOf(testing::StartsWith("; presets near it: \"Qwen/Qwen2.5-"),
                             testing::Not(HasSubstr("did you mean"))));
  EXPECT_EQ(near_models("nobody/strange-7b"), "");
}

}  // namespace
}  // namespace dstune::model_names_test
