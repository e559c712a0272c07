#include "core/report/files/emitted.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::emitted_test {
namespace {

using ::testing::HasSubstr;

json::object config(const char* text) { return parse_json(text).as_object(); }

TEST(TrainingArguments, SaysWhatTheTrainerWouldRefuseToDiffer) {
  const auto arguments = training_arguments(config(R"({
      "train_batch_size": 24, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3,
      "bf16": {"enabled": true}, "fp16": {"enabled": false}, "gradient_clipping": 0.5,
      "optimizer": {"type": "AdamW", "params": {"lr": 0.0003, "betas": [0.9, 0.95], "eps": 1e-8,
                                                "weight_decay": 0.1}},
      "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}}})"));

  const std::vector<TrainingArgument> expected = {{"--per_device_train_batch_size", "4"},
                                                  {"--gradient_accumulation_steps", "3"},
                                                  {"--bf16", "True"},
                                                  {"--max_grad_norm", "0.5"},
                                                  {"--learning_rate", "0.0003"},
                                                  {"--adam_beta1", "0.9"},
                                                  {"--adam_beta2", "0.95"},
                                                  {"--adam_epsilon", "1e-08"},
                                                  {"--weight_decay", "0.1"},
                                                  {"--warmup_steps", "100"}};
  EXPECT_EQ(arguments, expected);
}

TEST(TrainingArguments, LeavesToTheTrainerWhatIsAbsentOrAuto) {
  const auto arguments = training_arguments(config(R"({
      "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1,
      "fp16": {"enabled": true}, "gradient_clipping": "auto", "bf16": {"enabled": "auto"},
      "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
      "scheduler": "auto"})"));

  const std::vector<TrainingArgument> expected = {{"--per_device_train_batch_size", "4"},
                                                  {"--gradient_accumulation_steps", "1"},
                                                  {"--fp16", "True"}};
  EXPECT_EQ(arguments, expected);
}

TEST(CheckpointingArguments, SwitchOnWhatTheTrainerHas) {
  const auto arguments = [](const json::value& checkpointing) {
    return checkpointing_arguments(activation_checkpointing_from_json(checkpointing));
  };
  using Arguments = std::vector<TrainingArgument>;

  EXPECT_EQ(arguments(false), Arguments{});
  EXPECT_EQ(arguments("groups_of_2_layers"), Arguments{});
  EXPECT_EQ(arguments(true),
            (Arguments{{"--gradient_checkpointing", "True"},
                       {"--gradient_checkpointing_kwargs", R"({"use_reentrant":false})"}}));
  EXPECT_EQ(arguments("every_3_layers_reentrant").at(1).value,
            R"({"use_reentrant":true,"every_n_layers":3})");
}

TEST(TrainingArguments, AreALineEachForAShell) {
  EXPECT_EQ(
      training_arguments_text(
          {{"--bf16", "True"}, {"--gradient_checkpointing_kwargs", R"({"a":1})"}}, "/a b/o.json"),
      "--deepspeed '/a b/o.json'\n--bf16 True\n"
      "--gradient_checkpointing_kwargs '{\"a\":1}'\n");
}

TEST(AccelerateYaml, AsksForZeroInitOnlyWhereStage3WasTunedWithIt) {
  const auto optimum = config(R"({"zero_optimization": {"stage": 3}})");

  EXPECT_THAT(accelerate_yaml(optimum, "o.json", {}), HasSubstr("zero3_init_flag: true\n"));
  EXPECT_THAT(accelerate_yaml(optimum, "o.json", {}, false), HasSubstr("zero3_init_flag: false\n"));
}

TEST(AccelerateYaml, NamesTheFileAndTheRanks) {
  EXPECT_EQ(accelerate_yaml(config(R"({"zero_optimization": {"stage": 3}})"), "/r \"x\"/o.json",
                            {.processes = 16, .machines = 2}),
            "compute_environment: LOCAL_MACHINE\n"
            "distributed_type: DEEPSPEED\n"
            "deepspeed_config:\n"
            "  deepspeed_config_file: \"/r \\\"x\\\"/o.json\"\n"
            "  zero3_init_flag: true\n"
            "num_machines: 2\n"
            "num_processes: 16\n"
            "machine_rank: 0\n"
            "main_training_function: main\n"
            "use_cpu: false\n");
}

TEST(AccelerateYaml, InitialisesUnpartitionedBelowStage3) {
  const auto yaml = accelerate_yaml(config(R"({"zero_optimization": {"stage": 2}})"), "o.json", {});

  EXPECT_NE(yaml.find("zero3_init_flag: false"), std::string::npos);
}

// What Accelerate and Transformers made of such files: tests/data/emitted_fixture.json.
TEST(Emitted, IsWhatTheRealParsersAccepted) {
  const json::array fixture =
      parse_json(read_text_file(test::test_data("emitted_fixture.json"))).at("cases").as_array();
  ASSERT_GE(fixture.size(), 4U);
  for (const auto& value : fixture) {
    const json::object& example = value.as_object();
    const json::object& optimum = example.at("config").as_object();
    const std::string path(example.at("path").as_string());

    EXPECT_EQ(training_arguments_text(training_arguments(optimum), path),
              example.at("training_arguments").as_string());
    EXPECT_EQ(accelerate_yaml(optimum, path, {.processes = 1, .machines = 1}),
              example.at("accelerate_yaml").as_string());
    EXPECT_EQ(example.at("trainer_mismatches").as_array().size(), 0U);
  }
}

}  // namespace
}  // namespace dstune::emitted_test
