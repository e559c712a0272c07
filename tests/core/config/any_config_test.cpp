// What stands at the place of a value may be anything.
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "core/config/tuning_config.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::any_config_test {
namespace {

using testing_support::Faults;
using testing_support::faults_of;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

class AnyConfig : public testing::Test {
 protected:
  Faults faults(std::string_view text, CommandLine options = {}) {
    options.config_path = directory_ / "config.json";
    write_file(options.config_path, text);
    return faults_of([&] { read_tuning_config(options); });
  }

 private:
  TemporaryDirectory directory_;
};

json::value nested(const std::vector<std::string>& steps, const json::value& value) {
  json::value whole = value;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    whole = json::object{{*step, std::move(whole)}};
  }
  return whole;
}

void collect_places(const Section& section, const std::vector<std::string>& above,
                    std::vector<std::vector<std::string>>& places) {
  for (const KeyRule& rule : section.rules) {
    auto place = above;
    place.emplace_back(rule.key);
    places.push_back(place);
    if (rule.section != nullptr) collect_places(*rule.section, place, places);
  }
}

// The step is strict about types, but it cannot say where they stand.
TEST_F(AnyConfig, LeavesNoWrongTypeToTheStep) {
  CommandLine options;
  options.model = "gpt2";
  std::vector<std::vector<std::string>> places;
  collect_places(deepspeed_section(), {}, places);
  EXPECT_GT(places.size(), 250U);
  const json::array values = {-1, "x", "auto", json::array{1}};

  for (const auto& place : places) {
    for (const auto& value : values) {
      const std::string text = to_json_text(nested(place, value), 0);
      for (const auto& fault : faults(text, options)) {
        EXPECT_THAT(fault, testing::Not(testing::StartsWith("file "))) << text;
      }
    }
  }
}

// Whatever stands at the place of a value: a fault or a configuration, nothing else.
TEST_F(AnyConfig, SurvivesAnyValueAtAnyKey) {
  const std::vector<std::string> values = {"null",
                                           "true",
                                           "0",
                                           "-1",
                                           "1e308",
                                           "-1e308",
                                           "0.5",
                                           "\"\"",
                                           "\"auto\"",
                                           "[]",
                                           "[[]]",
                                           "[null, {}]",
                                           "{}",
                                           "{\"\": {}}",
                                           "18446744073709551615",
                                           "-9223372036854775808"};
  const std::vector<std::string> places = {
      R"({"X": @})",
      R"({"dstune": {"model": @}})",
      R"({"dstune": {"memory_limit": @}})",
      R"({"dstune": {"model": {"model_type": "gpt2", "n_embd": @}}})",
      R"({"dstune": {"model": {"model_type": @}}})",
      R"({"zero_optimization": {"stage": @}})",
      R"({"zero_optimization": {"offload_param": @}})",
      R"({"train_micro_batch_size_per_gpu": @})",
      R"({"train_batch_size": @})",
      R"({"gradient_accumulation_steps": @})",
      R"({"optimizer": {"params": {"betas": @}}})",
      R"({"optimizer": {"params": @}})",
      R"({"autotuning": {"arg_mappings": @}})",
      R"({"autotuning": {"max_train_batch_size": @}})",
      R"({"fp16": {"enabled": @}})"};

  for (const auto& place : places) {
    for (const auto& value : values) {
      auto text = place;
      text.replace(text.find('@'), 1, value);

      EXPECT_NO_THROW(faults(text)) << text;  // a ConfigError is what faults() returns
    }
  }
}

}  // namespace
}  // namespace dstune::any_config_test
