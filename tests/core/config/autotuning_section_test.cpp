#include "core/config/autotuning_section.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::autotuning_section_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

struct Read {
  AutotuningConfig config;
  Faults faults;
  std::vector<std::string> warnings;
};

Read read(const char* text) {
  Problems problems("config.json");
  Read result;
  result.config = read_autotuning(json::parse(text), problems, result.warnings);
  result.faults = faults_in(problems);
  return result;
}

TEST(ReadAutotuning, HasDeepSpeedsCodeDefaults) {
  const auto config = read("{}").config;

  EXPECT_FALSE(config.enabled);
  EXPECT_TRUE(config.fast);
  EXPECT_EQ(config.results_dir, "autotuning_results");
  EXPECT_EQ(config.exps_dir, "autotuning_exps");
  EXPECT_TRUE(config.overwrite);
  EXPECT_EQ(config.start_profile_step, 3);
  EXPECT_EQ(config.end_profile_step, 5);
  EXPECT_EQ(config.metric, Metric::throughput);
  EXPECT_EQ(config.tuner_type, "gridsearch");
  EXPECT_EQ(config.tuner_early_stopping, 5);
  EXPECT_EQ(config.tuner_num_trials, 50);
  EXPECT_EQ(config.max_train_batch_size, std::nullopt);
  EXPECT_EQ(config.min_train_batch_size, 1);
  EXPECT_EQ(config.max_train_micro_batch_size_per_gpu, 1024);
  EXPECT_EQ(config.min_train_micro_batch_size_per_gpu, 1);
  EXPECT_EQ(config.num_tuning_micro_batch_sizes, 3);
  EXPECT_EQ(config.mp_size, 1);
  EXPECT_TRUE(config.arg_mappings.empty());
}

TEST(ReadAutotuning, ReadsEveryKey) {
  const auto result = read(
      R"({"enabled": true, "fast": false, "results_dir": "r", "exps_dir": "e", "overwrite": false,
          "start_profile_step": 1, "end_profile_step": 2, "metric": "latency",
          "tuner_type": "random", "tuner_early_stopping": 7, "tuner_num_trials": 8,
          "max_train_batch_size": 64, "min_train_batch_size": 2,
          "max_train_micro_batch_size_per_gpu": 16, "min_train_micro_batch_size_per_gpu": 2,
          "num_tuning_micro_batch_sizes": 4, "mp_size": 2,
          "arg_mappings": {"train_micro_batch_size_per_gpu": "--batch"},
          "metric_path": null, "model_info_path": "x"})");

  const auto& config = result.config;
  EXPECT_EQ(result.faults, Faults{});
  EXPECT_TRUE(config.enabled);
  EXPECT_FALSE(config.fast);
  EXPECT_EQ(config.results_dir, "r");
  EXPECT_EQ(config.exps_dir, "e");
  EXPECT_FALSE(config.overwrite);
  EXPECT_EQ(config.start_profile_step, 1);
  EXPECT_EQ(config.end_profile_step, 2);
  EXPECT_EQ(config.metric, Metric::latency);
  EXPECT_EQ(config.tuner_type, "random");
  EXPECT_EQ(config.tuner_early_stopping, 7);
  EXPECT_EQ(config.tuner_num_trials, 8);
  EXPECT_EQ(config.max_train_batch_size, 64);
  EXPECT_EQ(config.min_train_batch_size, 2);
  EXPECT_EQ(config.max_train_micro_batch_size_per_gpu, 16);
  EXPECT_EQ(config.min_train_micro_batch_size_per_gpu, 2);
  EXPECT_EQ(config.num_tuning_micro_batch_sizes, 4);
  EXPECT_EQ(config.mp_size, 2);
  EXPECT_EQ(config.arg_mappings.at("train_micro_batch_size_per_gpu"), "--batch");
}

TEST(ReadAutotuning, KnowsTheThreeMetrics) {
  EXPECT_EQ(read(R"({"metric": "flops"})").config.metric, Metric::flops);
  EXPECT_EQ(read(R"({"metric": "throughput"})").config.metric, Metric::throughput);
  EXPECT_EQ(read(R"({"metric": "latencey"})").faults,
            Faults{"/autotuning/metric  is \"latencey\"; did you mean \"latency\"? accepted: "
                   "\"throughput\", \"latency\", \"flops\""});
}

TEST(ReadAutotuning, RejectsLimitsInTheWrongOrder) {
  EXPECT_EQ(read(R"({"start_profile_step": 9, "min_train_micro_batch_size_per_gpu": 2000,
                     "min_train_batch_size": 10, "max_train_batch_size": 8})")
                .faults,
            (Faults{"/autotuning/start_profile_step  is 9, above end_profile_step, which is 5",
                    "/autotuning/min_train_micro_batch_size_per_gpu  is 2000, above "
                    "max_train_micro_batch_size_per_gpu, which is 1024",
                    "/autotuning/min_train_batch_size  is 10, above max_train_batch_size, which "
                    "is 8"}));
}

TEST(ReadAutotuning, RejectsWrongValuesAndUnknownKeys) {
  EXPECT_EQ(
      read(R"({"tuner_num_trial": 5, "mp_size": 0, "arg_mappings": {"a": 1}, "fast": 1})").faults,
      (Faults{"/autotuning/tuner_num_trial  is unknown and would have no effect; did you mean "
              "\"tuner_num_trials\"?",
              "/autotuning/mp_size  is 0; accepted: an integer from 1 to 1000000",
              "/autotuning/fast  is 1; accepted: true or false",
              "/autotuning/arg_mappings/a  is 1; accepted: the option of the training "
              "command, such as \"--batch\""}));
  EXPECT_EQ(read("true").faults, Faults{"/autotuning  is true; accepted: an object"});
}

TEST(ReadAutotuning, MapsToFlagsAlone) {
  EXPECT_TRUE(
      read(R"({"arg_mappings": {"a": " --x_1.y-z ", "b": "-b", "c": " "}})").faults.empty());
  for (const char* words :
       {"--config /tmp/evil.py", "train.py", "--a=b", "-", "---x", "--x\u202e"}) {
    const std::string text = concat(R"({"arg_mappings": {"a": ")", words, R"("}})");
    EXPECT_EQ(read(text.c_str()).faults.size(), 1U) << words;
  }
}

TEST(ReadAutotuning, SaysThatDeepSpeedsOwnFilesAreNotWritten) {
  const auto warnings = read(R"({"metric_path": "a", "model_info_path": "b"})").warnings;

  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0].rfind("/autotuning/metric_path is not used: ", 0), 0U);
  EXPECT_EQ(warnings[1].rfind("/autotuning/model_info_path is not used: ", 0), 0U);
  EXPECT_TRUE(read(R"({"metric_path": null, "model_info_path": null})").warnings.empty());
}

TEST(ReadAutotuning, ReadsWhatIsSaidOfTheModel) {
  const auto result = read(R"({"model_info": {"num_params": 5e6, "hidden_size": 64}})");

  EXPECT_EQ(result.config.model_info.num_params, 5'000'000);
  EXPECT_EQ(result.config.model_info.hidden_size, 64);
  EXPECT_EQ(result.config.model_info.num_layers, std::nullopt);
  EXPECT_TRUE(result.warnings.empty());
  EXPECT_EQ(read(R"({"model_info": {"num_params": 0}})").faults.size(), 1U);
}

}  // namespace
}  // namespace dstune::autotuning_section_test
