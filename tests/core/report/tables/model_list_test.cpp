#include "core/report/tables/model_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/model/model_names.hpp"

namespace dstune::model_list_test {
namespace {

using testing::HasSubstr;

TEST(FormatModelList, HasALinePerNameWithinAHundredColumns) {
  const std::string text = format_model_list();

  EXPECT_THAT(text, HasSubstr("\nqwen2\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  qwen2.5-7b +7.62 B  Qwen/Qwen2.5-7B\n +"
                                           "Qwen/Qwen2.5-7B-Instruct\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\n  gpt2 +124 M   openai-community/gpt2\n"));
  for (const auto& line : split(text, '\n')) EXPECT_LE(line.size(), 100U) << line;
  for (const auto& preset : model_presets()) EXPECT_THAT(text, HasSubstr("  " + preset + " "));
}

TEST(ModelListToJson, HasTheExactNumberOfParameters) {
  const json::array list = model_list_to_json();

  ASSERT_EQ(list.size(), model_presets().size());
  const json::object first{{"name", "gpt2"},
                           {"model_type", "gpt2"},
                           {"num_params", 124'439'808},
                           {"tasks", {"causal_lm", "sequence_classification"}},
                           {"hub_names", {"openai-community/gpt2"}}};
  EXPECT_EQ(list.front(), first);
}

}  // namespace
}  // namespace dstune::model_list_test
