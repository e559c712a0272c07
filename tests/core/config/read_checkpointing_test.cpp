#include "core/config/read_checkpointing.hpp"

#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_checkpointing_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  std::vector<json::value> values;
  Faults faults;
};

Read read(std::string_view value) {
  Problems problems("config.json");
  const auto file = json::parse(concat(R"({"dstune": {"activation_checkpointing": )", value, "}}"));
  const auto values = read_checkpointing(file.as_object(), problems);
  return {values, faults_in(problems)};
}

TEST(ReadCheckpointing, KnowsEveryWay) {
  const std::pair<const char*, json::value> ways[] = {
      {"false", false},
      {"true", true},
      {R"({"every_n_layers": 1})", true},
      {R"({})", true},
      {R"({"every_n_layers": 3, "use_reentrant": true})", "every_3_layers_reentrant"},
      {R"({"checkpoint_num_layers": 2})", "groups_of_2_layers"},
      {R"({"by": "deepspeed"})", "groups_of_1_layers_by_deepspeed"},
      {R"({"by": "deepspeed", "checkpoint_num_layers": 4})", "groups_of_4_layers_by_deepspeed"},
      {R"("every_2_layers")", "every_2_layers"}};
  for (const auto& [text, form] : ways) {
    const Read result = read(text);
    EXPECT_EQ(result.faults, Faults{}) << text;
    EXPECT_THAT(result.values, ElementsAre(form)) << text;
  }
  EXPECT_THAT(read("null").values, IsEmpty());
}

TEST(ReadCheckpointing, TakesAListToTuneOverEachValueOnce) {
  EXPECT_THAT(read(R"([false, true, {"every_n_layers": 1}, {"every_n_layers": 2}])").values,
              ElementsAre(json::value(false), json::value(true), json::value("every_2_layers")));
}

TEST(ReadCheckpointing, SaysWhatIsWrongAndWhatIsAccepted) {
  const auto fault = [](std::string_view value) {
    const Faults faults = read(value).faults;
    return faults.size() == 1 ? faults.front() : concat(faults.size(), " faults");
  };

  EXPECT_THAT(fault("2"), HasSubstr("/dstune/activation_checkpointing  is 2; accepted: false"));
  EXPECT_THAT(fault("[true, 2]"), HasSubstr("/dstune/activation_checkpointing/1  is 2"));
  EXPECT_THAT(fault("[]"), HasSubstr("is an empty list"));
  EXPECT_THAT(fault(R"({"every_n_layer": 2})"), HasSubstr("did you mean \"every_n_layers\"?"));
  EXPECT_THAT(fault(R"({"every_n_layers": 0})"), HasSubstr("every_n_layers  is 0"));
  EXPECT_THAT(fault(R"({"by": "me"})"), HasSubstr("activation_checkpointing/by"));
  EXPECT_THAT(fault(R"({"every_n_layers": 2, "checkpoint_num_layers": 2})"),
              HasSubstr("every_n_layers  is transformers' way"));
  EXPECT_THAT(fault(R"({"by": "deepspeed", "use_reentrant": false})"),
              HasSubstr("use_reentrant  is false; accepted: true"));
}

class CheckpointingOfAFile : public testing::Test {
 protected:
  TuningConfig read_whole(std::string_view text) {
    CommandLine options;
    options.config_path = directory_ / "config.json";
    testing_support::write_file(options.config_path, text);
    return read_tuning_config(options);
  }

 private:
  testing_support::TemporaryDirectory directory_;
};

TEST_F(CheckpointingOfAFile, IsAnAxisOfEveryStageAndStaysInTheExperimentsJson) {
  const auto config =
      read_whole(R"({"dstune": {"model": "gpt2", "activation_checkpointing": [false, true]}})");

  ASSERT_EQ(config.space.all_stages.size(), 1U);
  EXPECT_EQ(config.space.all_stages[0].tied.at(0).pointer, kCheckpointingPointer);
  EXPECT_THAT(config.space.all_stages[0].tied.at(0).values,
              ElementsAre(json::value(false), json::value(true)));
  EXPECT_EQ(to_json_text(config.deepspeed.json(), 0),
            R"({"dstune":{"activation_checkpointing":false}})");
}

TEST_F(CheckpointingOfAFile, DeepSpeedsSectionIsWithoutEffectUnlessItsFunctionIsCalled) {
  constexpr const char* kFile = R"({"activation_checkpointing": {"partition_activations": true},
      "dstune": {"model": "gpt2", "activation_checkpointing": )";

  EXPECT_THAT(read_whole(concat(kFile, "true}}")).warnings,
              ElementsAre(HasSubstr("/activation_checkpointing has no effect")));
  EXPECT_THAT(read_whole(concat(kFile, R"({"by": "deepspeed"}}})")).warnings,
              ElementsAre(HasSubstr("/activation_checkpointing/partition_activations has no "
                                    "effect without model parallelism")));
}

TEST_F(CheckpointingOfAFile, RefusesContiguousBuffersAsDeepSpeedDoes) {
  const Faults faults = testing_support::faults_of([&] {
    read_whole(R"({"activation_checkpointing": {"contiguous_memory_optimization": true},
                   "dstune": {"model": "gpt2", "activation_checkpointing": {"by": "deepspeed"}}})");
  });

  EXPECT_THAT(faults, ElementsAre(HasSubstr("contiguous_memory_optimization  is true; accepted")));
}

}  // namespace
}  // namespace dstune::read_checkpointing_test
