#include "core/search/space/leanest.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/experiment/step_config.hpp"

namespace dstune::leanest_test {
namespace {

constexpr Bytes kPerSample = 100;

/// A stage 2 that needs its bucket and its prefetches, and less where gradients are not contiguous.
class LeanestTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.stages = {2};
    config_.settings.memory_limit = 1500;
    config_.deepspeed.set("zero_optimization", {{"reduce_bucket_size", 2000}});
    add("reduce_bucket_size", {2000, 3000, 1000});
    add("contiguous_gradients", {true, false});
  }

  void add(const char* key, std::vector<json::value> values) {
    const Axis axis{std::string("/zero_optimization/") + key, std::move(values)};
    config_.space.all_stages.push_back({{axis}});
  }

  DryRunner dry_run() {
    return [](const Experiment& experiment, int) {
      const StepConfig step = make_step_config(experiment);
      Measured measured;
      measured.peak_memory.allocated = static_cast<Bytes>(step.reduce_bucket_size) +
                                       kPerSample * static_cast<Bytes>(step.micro_batch) +
                                       (step.contiguous_gradients ? 300 : 0);
      const Bytes limit = experiment.settings.memory_limit;
      if (measured.peak_memory.allocated > limit) return DryRun{OutOfMemory{}, 0};
      return DryRun{measured, 0};
    };
  }

  TuningConfig config_;
};

TEST_F(LeanestTest, AllowsWhatIsLeftBesideTheLeastOfEveryList) {
  EXPECT_EQ(max_micro_batch_of_leanest(config_, 1, 2, dry_run()), 5);

  config_.settings.memory_limit = 1099;
  EXPECT_EQ(max_micro_batch_of_leanest(config_, 1, 2, dry_run()), 0);
}

TEST_F(LeanestTest, FindsTheLeastOfALongListAtItsEnds) {
  std::vector<json::value> many;
  for (int i = 0; i < 999; ++i) many.emplace_back(5000 - 5 * i);
  config_.space.all_stages.front().tied.front().values = many;

  EXPECT_EQ(max_micro_batch_of_leanest(config_, 1, 2, dry_run()), 14);
}

TEST_F(LeanestTest, GoesRoundWhatDeepSpeedRefuses) {
  add("reduce_scatter", {true, false});
  config_.deepspeed.set("prescale_gradients", true);  // not with reduce_scatter in stage 2

  EXPECT_EQ(max_micro_batch_of_leanest(config_, 1, 2, dry_run()), 5);
}

TEST_F(LeanestTest, IsLookedForWhereMicroBatchesDependOnIt) {
  StagePlan plan;
  plan.stage = 2;
  EXPECT_EQ(with_leanest(config_, 1, plan, dry_run()).max_micro_batch_of_leanest, 5);

  config_.micro_batches = {1, 2};
  EXPECT_EQ(with_leanest(config_, 1, plan, dry_run()).max_micro_batch_of_leanest, 0);
}

}  // namespace
}  // namespace dstune::leanest_test
