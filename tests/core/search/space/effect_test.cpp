#include "core/search/space/effect.hpp"

#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::effect_test {
namespace {

using test::TinyExperiment;
using testing::ElementsAre;

// 3 divides every tensor of this model, 2 does not.
TinyExperiment experiment_of(int stage, int ranks) {
  TinyExperiment tiny;
  tiny.stage = stage;
  tiny.ranks = ranks;
  tiny.model.hidden_size = 6;
  tiny.model.inner_size = 12;
  tiny.model.vocab_size = 33;
  tiny.zero = {{"reduce_bucket_size", 300}, {"sub_group_size", 200}};
  return tiny;
}

std::vector<int> different(const TinyExperiment& tiny) {
  return ranks_that_differ(make_step_config(tiny.make()), make_model_parameters(tiny.model),
                           tiny.ranks);
}

TEST(RanksThatDiffer, IsRankZeroWhereNothingOrAllIsDividedEvenly) {
  EXPECT_THAT(different(experiment_of(0, 5)), ElementsAre(0));
  EXPECT_THAT(different(experiment_of(3, 6)), ElementsAre(0));
  EXPECT_THAT(different(experiment_of(3, 5)), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(different(experiment_of(1, 6)), ElementsAre(0, 1, 3, 5));
  TinyExperiment hpz = experiment_of(3, 6);
  hpz.zero["zero_hpz_partition_size"] = 2;
  EXPECT_THAT(different(hpz), ElementsAre(0, 1, 3, 5));
}

// The ranks that are left out do the same step, to the last message and byte.
TEST(RanksThatDiffer, LeavesOutOnlyThoseWithTheSameStep) {
  for (const auto& [stage, ranks] : {std::pair(0, 5), std::pair(3, 6), std::pair(3, 2)}) {
    const TinyExperiment tiny = experiment_of(stage, ranks);
    ASSERT_THAT(different(tiny), ElementsAre(0)) << stage << " " << ranks;
    const Experiment experiment = tiny.make();
    const Effect first = find_effect(experiment, {0}, make_dry_runner());
    for (int rank = 1; rank < ranks; ++rank) {
      EXPECT_EQ(find_effect(experiment, {rank}, make_dry_runner()).number, first.number)
          << "stage " << stage << ", rank " << rank;
    }
  }
}

TEST(FindEffect, TellsStepsApartWhoseSumsAreEqual) {
  TinyExperiment early = experiment_of(3, 2);
  early.zero["stage3_param_persistence_threshold"] = 0;
  early.zero["stage3_prefetch_bucket_size"] = 500;
  TinyExperiment late = early;
  late.zero["stage3_prefetch_bucket_size"] = 0;
  const auto number = [](const TinyExperiment& tiny) {
    return find_effect(tiny.make(), {0}, make_dry_runner()).number;
  };

  EXPECT_EQ(number(early), number(early));
  EXPECT_NE(number(early), number(late));
}

/// Of about 1.6 million parameters each of two ranks has more than 1 MiB in fp32.
TinyExperiment swapping(const char* pipeline, json::object aio) {
  TinyExperiment tiny{3, 2, 1, 1, DType::bf16, false};
  tiny.model.hidden_size = 256;
  tiny.model.inner_size = 1024;
  tiny.model.num_heads = 4;
  tiny.zero["sub_group_size"] = 300'000;
  tiny.zero["offload_optimizer"] = {{"device", "nvme"}, {"nvme_path", "/"}, {"buffer_count", 12}};
  if (pipeline != nullptr) tiny.zero["offload_optimizer"].as_object()[pipeline] = true;
  tiny.root["aio"] = std::move(aio);
  return tiny;
}

Effect effect_of(const TinyExperiment& tiny) {
  Experiment experiment = tiny.make();
  experiment.settings.host_memory_limit = kNoLimit;
  return find_effect(experiment, {0, 1}, make_dry_runner());
}

TEST(FindEffect, TellsWaysOfSwappingApart) {
  std::set<std::uint64_t> numbers;
  const std::vector<TinyExperiment> ways = {swapping(nullptr, {}),
                                            swapping("pipeline_read", {}),
                                            swapping("pipeline_write", {}),
                                            swapping(nullptr, {{"queue_depth", 32}}),
                                            swapping(nullptr, {{"block_size", 524'288}}),
                                            swapping(nullptr, {{"single_submit", true}}),
                                            swapping(nullptr, {{"overlap_events", false}}),
                                            swapping(nullptr, {{"intra_op_parallelism", 2}})};
  for (const TinyExperiment& way : ways) {
    const Effect effect = effect_of(way);
    EXPECT_TRUE(effect.fits) << effect.skipped << effect.shortage;
    EXPECT_GT(effect.dry.peak_host_memory.drive, 0U);
    numbers.insert(effect.number);
  }
  EXPECT_EQ(numbers.size(), ways.size());
}

TEST(FindEffect, NamesEveryStoreThatIsTooSmallAndTheFirstOfThemInWords) {
  const PeakHostMemory needed = effect_of(swapping(nullptr, {})).dry.peak_host_memory;
  Experiment experiment = swapping(nullptr, {}).make();
  RunSettings& settings = experiment.settings;
  settings.host_memory_limit = needed.held;
  settings.pinned_limit = needed.pinned;
  settings.drive_limit = needed.drive;
  EXPECT_TRUE(find_effect(experiment, {0, 1}, make_dry_runner()).fits);

  --settings.pinned_limit;
  --settings.drive_limit;
  const Effect effect = find_effect(experiment, {0, 1}, make_dry_runner());

  EXPECT_FALSE(effect.fits);
  EXPECT_EQ(effect.full, Stores().set(number_of(Store::pinned)).set(number_of(Store::drive)));
  EXPECT_THAT(effect.shortage, testing::HasSubstr(" of pinned memory on rank "));
  EXPECT_EQ(effect.dry.peak_host_memory, needed) << "found without the limits";
}

TEST(IsDominated, SaysNothingOfStepsThatUseADrive) {
  const Measured plain = effect_of(swapping(nullptr, {})).dry;
  const Measured read = effect_of(swapping("pipeline_read", {})).dry;

  EXPECT_FALSE(is_dominated(plain, read));
  EXPECT_FALSE(is_dominated(read, plain));
}

TEST(FindEffect, ChecksTheLimitOnEveryRankAndNamesTheOneThatLacksMemory) {
  const DryRunner dry_run = [](const Experiment&, int rank) {
    Measured measured;
    measured.peak_memory.allocated = rank == 2 ? 11 : 10;
    return DryRun{measured, 1};
  };
  Experiment experiment;
  experiment.ranks = 4;
  experiment.settings.memory_limit = 11;
  EXPECT_TRUE(find_effect(experiment, {0, 2}, dry_run).fits);
  EXPECT_EQ(find_effect(experiment, {0, 2}, dry_run).dry.peak_memory.allocated, 11U);
  experiment.settings.memory_limit = 10;

  const Effect effect = find_effect(experiment, {0, 2}, dry_run);

  EXPECT_FALSE(effect.fits);
  EXPECT_EQ(effect.shortage, "needs 11 B on rank 2 of 10 B");
  EXPECT_TRUE(find_effect(experiment, {0, 1}, dry_run).fits);
}

TEST(FindEffect, ACachingAllocatorMayFitWithinTheLimitAfterAll) {
  const DryRunner dry_run = [](const Experiment& experiment, int) {
    Measured measured;
    measured.peak_memory.reserved = experiment.settings.memory_limit == 10 ? 10 : 12;
    return DryRun{measured, 1};
  };
  Experiment experiment;
  experiment.settings.memory_limit = 10;
  EXPECT_FALSE(find_effect(experiment, {0}, dry_run).fits);
  experiment.settings.allocator = AllocatorModel::caching;

  EXPECT_TRUE(find_effect(experiment, {0}, dry_run).fits);
}

TEST(FindEffect, WhatIsInUseDoesNotShrinkWithTheLimit) {
  int runs = 0;
  const DryRunner dry_run = [&](const Experiment&, int) {
    ++runs;
    Measured measured;
    measured.peak_memory.allocated = 11;
    measured.peak_memory.reserved = 12;
    return DryRun{measured, 1};
  };
  Experiment experiment;
  experiment.settings.memory_limit = 10;
  experiment.settings.allocator = AllocatorModel::caching;

  EXPECT_FALSE(find_effect(experiment, {0}, dry_run).fits);
  EXPECT_EQ(runs, 1);
}

TEST(FindEffect, SaysWhyThereIsNoStep) {
  const DryRunner dry_run = [](const Experiment&, int) { return DryRun{Skipped{"why"}, 0}; };

  EXPECT_EQ(find_effect({}, {0}, dry_run).skipped, "why");
}

Measured dry(Bytes peak, Stream stream = Stream::reduction) {
  Measured measured;
  measured.peak_memory.allocated = peak;
  CollectiveLine line;
  line.stream = stream;
  line.ranks = 2;
  line.elements = 10;
  line.bytes = 40;
  measured.ledger.add(line);
  measured.ledger.add_pass(MemoryPass::norm, 10, 0);
  measured.ledger.add_sync(HostSync::timer, 0);
  measured.ledger.add_host(HostEvent::gradient_hook, 0);
  return measured;
}

TEST(IsDominated, NeedsMoreOfSomethingAndLessOfNothing) {
  EXPECT_TRUE(is_dominated(dry(11), dry(10)));
  EXPECT_FALSE(is_dominated(dry(10), dry(11)));
  EXPECT_FALSE(is_dominated(dry(10), dry(10))) << "equal ones would throw each other out";
}

TEST(IsDominated, LooksAtEverythingThatIsCounted) {
  const Measured base = dry(11);
  Measured calls = dry(10);
  calls.ledger.add({.ranks = 2}, 1);
  Measured pass = dry(10);
  pass.ledger.add_pass(MemoryPass::norm, 1, 0);
  Measured bytes = dry(10);
  bytes.ledger.repeat(bytes.ledger.since(dry(10).ledger), 1);
  Measured sync = dry(10);
  sync.ledger.add_sync(HostSync::norm, 0);
  Measured transfer = dry(10);
  transfer.ledger.add_transfer({.bytes = 4});
  Measured sent = transfer;
  sent.ledger.add_transfer({.bytes = 4});
  Measured same_calls = transfer;
  same_calls.ledger.add_transfer({.bytes = 8});
  Measured host_pass = dry(10);
  host_pass.ledger.add_host_pass(MemoryPass::update, 1, 0, 0);
  Measured host_memory = dry(10);
  host_memory.peak_host_memory.held = 1;
  Measured host = dry(10);
  host.ledger.add_host(HostEvent::gradient_hook, 0);

  EXPECT_TRUE(is_dominated(base, bytes));
  for (const Measured* other : {&calls, &pass, &sync, &transfer, &host, &host_pass, &host_memory}) {
    EXPECT_FALSE(is_dominated(base, *other));
  }
  EXPECT_TRUE(is_dominated(same_calls, sent));
  EXPECT_FALSE(is_dominated(sent, same_calls)) << "fewer bytes in as many copies";
}

TEST(IsDominated, WhatRunsBesideTheComputationIsWorthMore) {
  EXPECT_FALSE(is_dominated(dry(11, Stream::reduction), dry(10, Stream::compute)));
  EXPECT_TRUE(is_dominated(dry(10, Stream::compute), dry(10, Stream::reduction)));
}

}  // namespace
}  // namespace dstune::effect_test
