#include "core/report/files/command_words.hpp"

#include <gtest/gtest.h>

#include "core/base/text.hpp"

namespace dstune::command_words_test {
namespace {

Words words(const char* text) { return split(text, ' '); }

TEST(ReplaceValue, ReplacesEveryValueOfTheFlagAndNoOther) {
  Words command = words("t.py --gas --x --gas 1 --gas_limit 3 --gas=2");

  EXPECT_TRUE(replace_value(command, "--gas", "8"));

  EXPECT_EQ(join(command, " "), "t.py --gas 8 --x --gas 8 --gas_limit 3 --gas=8");
}

TEST(ReplaceValue, SaysThatThereIsNoSuchFlag) {
  Words command = words("t.py --gas_limit 3");

  EXPECT_FALSE(replace_value(command, "--gas", "8"));
  EXPECT_EQ(join(command, " "), "t.py --gas_limit 3");
}

TEST(RemoveAutotuning, TakesTheSwitchOfDeepSpeedsLauncherOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"deepspeed --autotuning run t.py --x", "deepspeed t.py --x"},
      {"/opt/bin/deepspeed --autotuning=tune t.py", "/opt/bin/deepspeed t.py"},
      {"python -m deepspeed.launcher.runner --autotuning run t.py",
       "python -m deepspeed.launcher.runner t.py"},
      {"deepspeed --autotuning t.py", "deepspeed t.py"},
      {"torchrun t.py --autotuning run", "torchrun t.py --autotuning run"}};
  for (const auto& [given, expected] : cases) {
    Words command = words(given);

    remove_autotuning(command);

    EXPECT_EQ(join(command, " "), expected);
  }
}

struct AccelerateCase {
  const char* given;
  const char* with_yaml;
  const char* without_yaml;
};

TEST(SetAccelerateFiles, ConfiguresTheLauncherAndLeavesTheScriptAlone) {
  const AccelerateCase cases[] = {
      {"accelerate launch --num_processes 4 t.py --config_file mine",
       "accelerate launch --config_file /o.yaml --num_processes 4 t.py --config_file mine",
       "accelerate launch --use_deepspeed --deepspeed_config_file /o.json --num_processes 4 t.py "
       "--config_file mine"},
      {"/v/bin/accelerate launch --config_file a.yaml -m train --x",
       "/v/bin/accelerate launch --config_file /o.yaml -m train --x",
       "/v/bin/accelerate launch --use_deepspeed --deepspeed_config_file /o.json --config_file "
       "a.yaml -m train --x"},
      {"accelerate-launch --deepspeed_config_file=a.json t.py",
       "accelerate-launch --config_file /o.yaml --deepspeed_config_file=a.json t.py",
       "accelerate-launch --deepspeed_config_file=/o.json t.py"},
      {"python -m accelerate.commands.launch t.py",
       "python -m accelerate.commands.launch --config_file /o.yaml t.py",
       "python -m accelerate.commands.launch --use_deepspeed --deepspeed_config_file /o.json "
       "t.py"}};
  for (const auto& example : cases) {
    Words command = words(example.given);
    EXPECT_TRUE(set_accelerate_files(command, {"/o.json", "/o.yaml"}));
    EXPECT_EQ(join(command, " "), example.with_yaml);

    command = words(example.given);
    EXPECT_TRUE(set_accelerate_files(command, {"/o.json", ""}));
    EXPECT_EQ(join(command, " "), example.without_yaml);
  }
}

TEST(SetAccelerateFiles, LeavesOtherCommandsAlone) {
  Words command = words("deepspeed accelerate.py launch --config_file a");

  EXPECT_FALSE(set_accelerate_files(command, {"/o.json", "/o.yaml"}));
  EXPECT_EQ(join(command, " "), "deepspeed accelerate.py launch --config_file a");
}

}  // namespace
}  // namespace dstune::command_words_test
