#include "core/config/search_size.hpp"

#include <string>

#include <gtest/gtest.h>

namespace dstune::search_size_test {
namespace {

TuningConfig config_of(int stages, int trials) {
  TuningConfig config;
  for (int stage = 0; stage < stages; ++stage) config.stages.push_back(stage);
  config.autotuning.tuner_num_trials = trials;
  return config;
}

std::size_t problems_of(const TuningConfig& config) {
  Problems problems("config.json");
  check_search_size(config, problems);
  return problems.count();
}

TEST(SearchSize, IsBoundedByTheTrialsAndByWhatCanBeTried) {
  EXPECT_EQ(most_experiments(config_of(4, 50)), 50);

  TuningConfig list = config_of(2, 1'000'000'000);
  list.micro_batches = {1, 2, 4};
  EXPECT_EQ(most_experiments(list), 6);

  EXPECT_LT(most_experiments(config_of(4, 1'000'000'000)), 1000);
}

TEST(SearchSize, AnOrdinaryFileIsAcceptedWithAnyNumberOfTrials) {
  TuningConfig config = config_of(4, 1'000'000'000);
  config.deepspeed.set("scheduler", {{"type", "WarmupLR"}, {"params", {{"warmup_num_steps", 10}}}});
  config.autotuning.num_tuning_micro_batch_sizes = 1000;

  EXPECT_EQ(problems_of(config), 0U);
}

TEST(SearchSize, ALongFileIsRefusedOnlyWithManyExperiments) {
  TuningConfig config = config_of(4, 1);
  config.deepspeed.set("comment", json::string(std::size_t{8} << 20U, 'x'));

  EXPECT_EQ(problems_of(config), 0U);
  config.autotuning.tuner_num_trials = 50;
  EXPECT_EQ(problems_of(config), 1U);
}

TEST(SearchSize, SmallValuesCountWhatTheyTakeInMemory) {
  TuningConfig config = config_of(4, 50);
  config.deepspeed.set("list", json::array(500'000));  // 1 MB of text

  EXPECT_EQ(problems_of(config), 1U);
}

}  // namespace
}  // namespace dstune::search_size_test
