// What a results directory has when a run is over.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/report/files/optimal.hpp"
#include "tests/core/report/files/results_directory_fixture.hpp"

namespace dstune::results_directory_finish_test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;
using testing_support::ResultsDirectoryTest;

TEST_F(ResultsDirectoryTest, FinishWritesTheOptimumItsCommandTableAndSummary) {
  const auto directory = prepare(ExistingResults::refuse);
  RunResults results;
  results.records = {make_record(make_experiment(2, 4, 3), make_measured(8))};
  results.best = results.records[0];
  results.ranks = 4;
  results.training_command = {"deepspeed", "train.py", "--deepspeed", "ds.json"};
  results.arg_mappings = {{"train_micro_batch_size_per_gpu", "--mbs"}};

  directory.finish(results);

  EXPECT_EQ(read_json("ds_config_optimal.json").at("train_batch_size"), 48);
  EXPECT_EQ(read_text_file(results_ + "/cmd_optimal.txt"),
            "deepspeed train.py --deepspeed " + results_ + "/ds_config_optimal.json --mbs 4\n");
  EXPECT_THAT(read_text_file(results_ + "/results.csv"), StartsWith("name,"));
  EXPECT_THAT(read_text_file(results_ + "/summary.txt"),
              AllOf(StartsWith("| tuning_space"), HasSubstr(results_ + "/z2_gas3_tmbspg4")));
}

TEST_F(ResultsDirectoryTest, FinishWritesTheFormsThatAreAskedFor) {
  const auto directory = prepare(ExistingResults::refuse);
  RunResults results;
  results.records = {make_record(make_experiment(2, 4, 3), make_measured(8))};
  results.best = results.records[0];
  results.ranks = 4;
  results.training_command = {"accelerate", "launch", "t.py"};
  results.emit = {EmittedForm::accelerate, EmittedForm::transformers};
  results.training_ranks = {.processes = 8, .machines = 1};
  results.left_to_trainer = {"/optimizer/params/lr"};

  const auto line = shell_line(directory.finish(results));

  EXPECT_EQ(line, "accelerate launch --config_file " + results_ +
                      "/accelerate_optimal.yaml t.py --per_device_train_batch_size 4 "
                      "--gradient_accumulation_steps 3 --max_grad_norm 1.0");
  EXPECT_EQ(read_text_file(results_ + "/cmd_optimal.txt"), line + "\n");
  EXPECT_THAT(read_text_file(results_ + "/accelerate_optimal.yaml"),
              AllOf(HasSubstr("num_processes: 8\n"),
                    HasSubstr("\"" + results_ + "/ds_config_optimal.json\"")));
  EXPECT_EQ(read_text_file(results_ + "/training_arguments_optimal.txt"),
            "--deepspeed " + results_ +
                "/ds_config_optimal.json\n--per_device_train_batch_size 4\n"
                "--gradient_accumulation_steps 3\n--max_grad_norm 1.0\n");
  EXPECT_EQ(read_json("ds_config_optimal.json").at("optimizer").at("params").at("lr"), "auto");
}

TEST_F(ResultsDirectoryTest, FinishRemovesTheFormsThatAreNotAskedForAnyMore) {
  const auto directory = prepare(ExistingResults::refuse);
  const std::vector<std::string> stale = {"accelerate_optimal.yaml", "accelerate_provisional.yaml",
                                          "training_arguments_optimal.txt", "cmd_optimal.txt"};
  for (const auto& name : stale) put(name);
  RunResults results;
  results.records = {make_record(make_experiment(2, 4, 3), make_measured(8))};
  results.best = results.records[0];

  EXPECT_TRUE(directory.finish(results).empty());

  for (const auto& name : stale) EXPECT_FALSE(fs::exists(results_ + "/" + name)) << name;
}

TEST_F(ResultsDirectoryTest, FinishWithoutAnOptimumLeavesNoOldOne) {
  const auto directory = prepare(ExistingResults::refuse);
  put("ds_config_optimal.json");
  put("cmd_optimal.txt");

  directory.finish({});

  EXPECT_FALSE(fs::exists(results_ + "/ds_config_optimal.json"));
  EXPECT_FALSE(fs::exists(results_ + "/cmd_optimal.txt"));
  EXPECT_THAT(read_text_file(results_ + "/summary.txt"), HasSubstr("No optimal setup"));
}

TEST_F(ResultsDirectoryTest, AnInterruptedRunsOptimumIsProvisionalUntilItIsFinal) {
  const auto directory = prepare(ExistingResults::refuse);
  RunResults results;
  results.records = {make_record(make_experiment(2, 4, 3), make_measured(8))};
  results.best = results.records[0];
  results.training_command = {"deepspeed", "train.py"};
  results.provisional = true;
  put("ds_config_optimal.json");
  put("cmd_optimal.txt");

  directory.finish(results);

  EXPECT_TRUE(fs::exists(results_ + "/ds_config_provisional.json"));
  EXPECT_THAT(read_text_file(results_ + "/cmd_provisional.txt"),
              HasSubstr("ds_config_provisional.json"));
  EXPECT_FALSE(fs::exists(results_ + "/ds_config_optimal.json"));
  EXPECT_FALSE(fs::exists(results_ + "/cmd_optimal.txt"));
  EXPECT_THAT(read_text_file(results_ + "/summary.txt"),
              AllOf(HasSubstr("is the provisional setup"), HasSubstr("was interrupted")));

  results.provisional = false;
  directory.finish(results);

  EXPECT_TRUE(fs::exists(results_ + "/ds_config_optimal.json"));
  EXPECT_TRUE(fs::exists(results_ + "/cmd_optimal.txt"));
  EXPECT_FALSE(fs::exists(results_ + "/ds_config_provisional.json"));
  EXPECT_FALSE(fs::exists(results_ + "/cmd_provisional.txt"));
}

}  // namespace
}  // namespace dstune::results_directory_finish_test
