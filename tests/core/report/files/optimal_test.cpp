#include "core/report/files/optimal.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"
#include "tests/support/set_in.hpp"

namespace dstune::optimal_test {
namespace {

std::string optimal_line(const std::vector<std::string>& command, const json::object& mappings,
                         const json::object& config, const OptimumFiles& files) {
  return shell_line(optimal_words(command, mappings, config, files));
}

using testing_support::make_experiment;

TEST(OptimalConfig, HasABatchSizeForTheRanksAndNoSectionsOfATuner) {
  Experiment best = make_experiment(2, 4, 3, 2);
  best.ds_config.set("autotuning", json::object{{"enabled", true}});
  best.ds_config.set("dstune", json::object{{"model", "gpt2"}});
  best.ds_config.set("wall_clock_breakdown", true);

  const json::object config = optimal_config(best, 8);

  EXPECT_EQ(config.at("train_batch_size"), 4 * 3 * 8);
  EXPECT_EQ(config.at("train_micro_batch_size_per_gpu"), 4);
  EXPECT_EQ(config.at("gradient_accumulation_steps"), 3);
  EXPECT_EQ(config.at("wall_clock_breakdown"), true);
  EXPECT_EQ(config.at("zero_optimization").at("stage"), 2);
  EXPECT_FALSE(config.contains("autotuning"));
  EXPECT_FALSE(config.contains("dstune"));
}

TEST(OptimalConfig, RejectsABatchSizeThatIsNoNumber) {
  Experiment best = make_experiment(2, 4);
  best.ds_config.set("train_micro_batch_size_per_gpu", "auto");

  EXPECT_THROW(optimal_config(best, 1), std::invalid_argument);
}

TEST(OptimalConfig, KeepsOpenWhatIsLeftToTheTrainer) {
  const Experiment best = make_experiment(2, 4);

  const json::object config =
      optimal_config(best, 1, {"/optimizer/params/lr", "/optimizer/params/eps", "/gone/lr"});

  EXPECT_EQ(config.at("optimizer").at("params"), (json::value{{"lr", "auto"}}));
  EXPECT_FALSE(config.contains("gone"));
}

json::object optimum_of(int stage, const char* model_type, const json::value& leaf_module) {
  Experiment best = make_experiment(stage, 4);
  best.settings.model.family = model_type;
  if (!leaf_module.is_null()) {
    testing_support::set_in(best.ds_config, "zero_optimization", "leaf_module", leaf_module);
  }
  return optimal_config(best, 2).at("zero_optimization").as_object();
}

TEST(OptimalConfig, NamesTheBlocksOfExpertsInStage3) {
  const json::value known{
      {"classes", {"transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock"}}};
  const json::value own{{"names", json::array{"model.layers.0"}}};

  EXPECT_EQ(optimum_of(3, "mixtral", nullptr).at("leaf_module"), known);
  EXPECT_EQ(optimum_of(3, "mixtral", own).at("leaf_module"), own);
  EXPECT_FALSE(optimum_of(2, "mixtral", nullptr).contains("leaf_module"));
  EXPECT_FALSE(optimum_of(3, "mistral", nullptr).contains("leaf_module"));
}

TEST(OptimalConfig, NamesNoLeavesToAReleaseThatRefusesTheKey) {
  Experiment best = make_experiment(3, 4);
  best.settings.model.family = "mixtral";
  best.ds_config.set("dstune", json::object{{"deepspeed_version", "0.17.6"}});

  EXPECT_FALSE(optimal_config(best, 2).at("zero_optimization").as_object().contains("leaf_module"));
}

json::object pinned(int stage, const char* version, json::object more = {}) {
  Experiment best = make_experiment(stage, 4);
  best.ds_config.set("dstune", json::object{{"deepspeed_version", version}});
  for (const auto& member : more) best.ds_config.set(member.key(), member.value());
  return optimal_config(best, 2);
}

TEST(OptimalConfig, WritesOutWhatTheReleaseDoesByDefault) {
  EXPECT_EQ(pinned(2, "0.19.8").at("gradient_clipping"), 1.0);
  EXPECT_EQ(pinned(2, "0.19.2").at("gradient_clipping"), 0.0);
  EXPECT_EQ(pinned(2, "0.19.2", {{"gradient_clipping", 0.5}}).at("gradient_clipping"), 0.5);
}

TEST(OptimalConfig, WritesOutDefaultsOnlyWhereTheyMatter) {
  const json::object bf16 = {{"bf16", json::object{{"enabled", true}}}};
  json::object summed = bf16;
  summed["data_types"] = json::object{{"grad_accum_dtype", "fp32"}};
  const json::object other_name = {{"bfloat16", json::object{{"enabled", true}}}};

  EXPECT_EQ(pinned(2, "0.18.2", bf16).at("bf16"),
            (json::value{{"enabled", true}, {"check_grad_overflow", false}}));
  EXPECT_EQ(pinned(2, "0.19.3", other_name).at("bfloat16"),
            (json::value{{"enabled", true}, {"check_grad_overflow", true}}));
  EXPECT_EQ(pinned(3, "0.18.2", bf16).at("bf16"), (json::value{{"enabled", true}}));
  EXPECT_EQ(pinned(1, "0.16.9", summed).at("bf16"),
            (json::value{{"enabled", true}, {"immediate_grad_update", true}}));
  EXPECT_FALSE(pinned(2, "0.18.2").contains("bf16"));
}

TEST(OptimalConfig, WritesOutThePinnedMemoryOfWhatIsOffloaded) {
  const auto zero_of = [](const char* version, const char* device) {
    const json::object offload = {{"device", device}};
    return pinned(2, version,
                  {{"zero_optimization", {{"stage", 2}, {"offload_optimizer", offload}}}})
        .at("zero_optimization")
        .at("offload_optimizer");
  };

  EXPECT_EQ(zero_of("0.19.4", "cpu"), (json::value{{"device", "cpu"}, {"pin_memory", false}}));
  EXPECT_EQ(zero_of("0.19.5", "cpu"), (json::value{{"device", "cpu"}, {"pin_memory", true}}));
  EXPECT_EQ(zero_of("0.19.5", "none"), (json::value{{"device", "none"}}));
}

TEST(OptimalConfig, WritesParametersOnTheHostAsTheSectionHasThem) {
  const json::object offload = {{"device", "cpu"}, {"buffer_count", 5}};
  const auto zero_of = [&](int stage) {
    return pinned(stage, "0.19.8",
                  {{"zero_optimization", {{"stage", stage}, {"offload_param", offload}}}})
        .at("zero_optimization")
        .at("offload_param");
  };

  EXPECT_EQ(zero_of(3),
            (json::value{{"device", "cpu"}, {"buffer_count", 5}, {"pin_memory", true}}));
  EXPECT_EQ(zero_of(2), json::value(offload));
}

struct CommandCase {
  const char* about;
  std::vector<std::string> command;
  json::object mappings;
  std::string expected;
};

json::object both() {
  return {{"train_micro_batch_size_per_gpu", "--per_device_train_batch_size"},
          {"gradient_accumulation_steps ", " --gas "}};
}

std::vector<CommandCase> command_cases() {
  return {{"values are replaced",
           {"deepspeed", "t.py", "--per_device_train_batch_size", "1", "--gas", "9", "--deepspeed",
            "ds.json"},
           both(),
           "deepspeed t.py --per_device_train_batch_size 4 --gas 3 --deepspeed /r/o.json"},
          {"values after an equals sign are replaced",
           {"t.py", "--gas=9", "--per_device_train_batch_size=1", "--deepspeed=ds.json"},
           both(),
           "t.py --gas=3 --per_device_train_batch_size=4 --deepspeed=/r/o.json"},
          {"missing flags are appended",
           {"t.py", "--deepspeed_config", "ds.json"},
           both(),
           "t.py --deepspeed_config /r/o.json --per_device_train_batch_size 4 --gas 3"},
          {"--deepspeed without a file is a switch",
           {"t.py", "--deepspeed", "--deepspeed_config=ds.json"},
           {},
           "t.py --deepspeed --deepspeed_config=/r/o.json"},
          {"a command without a configuration gets one",
           {"t.py", "--deepspeed", "--epochs", "3"},
           {},
           "t.py --deepspeed --epochs 3 --deepspeed_config /r/o.json"},
          {"a flag at the end gets its value",
           {"t.py", "--deepspeed", "ds.json", "--gas"},
           both(),
           "t.py --deepspeed /r/o.json --gas 3 --per_device_train_batch_size 4"},
          {"a flag without a value does not swallow the next",
           {"t.py", "--gas", "--deepspeed", "ds.json"},
           {{"gradient_accumulation_steps", "--gas"}},
           "t.py --gas 3 --deepspeed /r/o.json"},
          {"a longer flag is another flag",
           {"t.py", "--gas_limit", "9", "--deepspeed", "ds.json"},
           {{"gradient_accumulation_steps", "--gas"}},
           "t.py --gas_limit 9 --deepspeed /r/o.json --gas 3"},
          {"keys inside sections, booleans and doubles",
           {"t.py", "--deepspeed", "ds.json"},
           {{"stage", "--zero"}, {"overlap_comm", "--overlap"}, {"lr", "--learning_rate"}},
           "t.py --deepspeed /r/o.json --zero 2 --overlap True --learning_rate 0.0003"},
          {"keys that are absent, auto or no text change nothing",
           {"t.py", "--deepspeed", "ds.json"},
           {{"no_such_key", "--x"}, {"warmup", "--w"}, {"lr", 3}, {"stage", " "}, {"flag", "--f"}},
           "t.py --deepspeed /r/o.json"},
          {"words are quoted for the shell",
           {"python", "my train.py", "--name", "it's $HOME", "", "--deepspeed", "ds.json"},
           {},
           "python 'my train.py' --name 'it'\\''s $HOME' '' --deepspeed /r/o.json"}};
}

TEST(OptimalCommand, AppliesArgMappings) {
  Experiment best = make_experiment(2, 4, 3);
  best.ds_config.set("zero_optimization", {{"stage", 2}, {"overlap_comm", true}});
  best.ds_config.set("warmup", "auto");
  best.ds_config.set("flag", "--no-safety");

  for (const auto& example : command_cases()) {
    EXPECT_EQ(optimal_line(example.command, example.mappings, best.ds_config.json(), {"/r/o.json"}),
              example.expected)
        << example.about;
  }
}

TEST(OptimalCommand, ConfiguresAccelerateAndTheTrainer) {
  const json::object config = make_experiment(2, 4).ds_config.json();
  const OptimumFiles files{"/o.json", "/o.yaml", {{"--bf16", "True"}, {"--mbs", "4"}}};

  EXPECT_EQ(optimal_line({"accelerate", "launch", "t.py", "--mbs=1"}, {}, config, files),
            "accelerate launch --config_file /o.yaml t.py --mbs=4 --bf16 True");
  EXPECT_EQ(optimal_line({"accelerate", "launch", "t.py"}, {}, config, {"/o.json"}),
            "accelerate launch --use_deepspeed --deepspeed_config_file /o.json t.py");
  EXPECT_EQ(optimal_line({"accelerate", "launch", "t.py", "--deepspeed", "a.json"}, {}, config,
                         {"/o.json"}),
            "accelerate launch t.py --deepspeed /o.json");
  EXPECT_EQ(optimal_line({"deepspeed", "--autotuning", "run", "t.py"}, {}, config, {"/o.json"}),
            "deepspeed t.py --deepspeed_config /o.json");
}

TEST(ShellQuoted, QuotesOnlyWhatMustBe) {
  EXPECT_EQ(shell_quoted("--lr=3e-4"), "--lr=3e-4");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("~/x*"), "'~/x*'");
  EXPECT_EQ(shell_quoted("\x1B[1m'\\\u202E"), "$'\\x1B[1m\\'\\\\\\xE2\\x80\\xAE'");
}

}  // namespace
}  // namespace dstune::optimal_test
