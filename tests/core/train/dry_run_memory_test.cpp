#include "core/train/dry_run_memory.hpp"

#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/parallel.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::dry_run_memory_test {
namespace {

TEST(DryRunMemory, AsksOnceForEachShapeWhateverItsSeed) {
  DryRunMemory memory;
  int asked = 0;
  const auto ask = [&] { return std::int64_t{++asked}; };

  EXPECT_EQ(memory.attention_workspace({.batch = 2, .seed = 1}, ask), 1);
  EXPECT_EQ(memory.attention_workspace({.batch = 2, .seed = 2}, ask), 1);
  EXPECT_EQ(memory.attention_workspace({.batch = 3, .seed = 2}, ask), 2);
}

// Several threads walk steps of one search, and know the same.
TEST(DryRunMemory, DryRunsInThreadsAreThoseOfOneThread) {
  std::vector<Experiment> experiments;
  for (int i = 0; i < 24; ++i) {
    test::TinyExperiment tiny;
    tiny.stage = i % 4;
    tiny.ranks = 2;
    tiny.zero = {{"reduce_bucket_size", 300 + i}};
    experiments.push_back(tiny.make());
    experiments.back().settings.allocator = AllocatorModel::caching;
  }
  DryRunMemory memory;
  std::vector<DryRun> runs(experiments.size());

  for_each_in_parallel(
      runs.size(), [&](std::size_t i) { runs[i] = dry_run(experiments[i], 1, nullptr, &memory); });

  for (std::size_t i = 0; i < runs.size(); ++i) {
    const DryRun alone = dry_run(experiments[i], 1);
    EXPECT_EQ(runs[i].walk, alone.walk);
    EXPECT_EQ(std::get<Measured>(runs[i].outcome).peak_memory,
              std::get<Measured>(alone.outcome).peak_memory);
  }
}

}  // namespace
}  // namespace dstune::dry_run_memory_test
