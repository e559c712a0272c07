// A rehearsal that counts alike work beside one that does all of it.
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/training_step.hpp"
#include "tests/support/even_model.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::rehearsal_test {
namespace {

using test::TinyExperiment;

struct Walk {
  PeakMemory peak;
  Ledger ledger;
};

/// Two steps, every micro-step and every owner of them.
Walk walk_all(const Experiment& experiment, int rank) {
  const StepConfig config = make_step_config(experiment);
  DryDevice device(experiment.settings.memory_limit);
  device.memory().count_as(experiment.settings.allocator);
  DryCollectives collectives(device, rank, experiment.ranks);
  TrainingStep step(experiment.settings, config, device, collectives);
  step.run();
  step.run();
  return {device.memory().peak(), device.ledger()};
}

double wire_bytes(const Ledger& ledger) {
  double sum = 0;
  for (const CollectiveLine& line : ledger.collectives()) sum += line.wire_bytes;
  return sum;
}

void expect_same(const TinyExperiment& tiny, int rank, AllocatorModel allocator) {
  Experiment experiment = tiny.make();
  experiment.settings.allocator = allocator;
  const Walk all = walk_all(experiment, rank);

  const auto dry = std::get<Measured>(dry_run(experiment, rank).outcome);

  EXPECT_EQ(dry.peak_memory, all.peak) << tiny.name() << ", rank " << rank;
  EXPECT_TRUE(dry.ledger.same_work(all.ledger)) << tiny.name() << ", rank " << rank;
  EXPECT_NEAR(wire_bytes(dry.ledger), wire_bytes(all.ledger), 1e-9 * wire_bytes(all.ledger))
      << tiny.name() << ", rank " << rank;
}

void expect_same(const TinyExperiment& tiny, int rank) {
  expect_same(tiny, rank, AllocatorModel::exact);
  expect_same(tiny, rank, AllocatorModel::caching);
}

std::vector<int> some_ranks(int ranks) {
  if (ranks < 4) return {0, ranks - 1};
  return {0, 1, ranks / 2, ranks - 1};
}

class Rehearsal : public testing::TestWithParam<const char*> {};

TEST_P(Rehearsal, CountsTheMicroStepsThatAFullWalkDoes) {
  const json::object zero = json::parse(GetParam()).as_object();
  for (const int stage : {0, 1, 2, 3}) {
    for (int accumulation = 1; accumulation <= 9; ++accumulation) {
      for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
        for (const bool client : {false, true}) {
          expect_same({stage, 4, 1, accumulation, dtype, client, zero}, 1);
        }
      }
    }
  }
}

TEST_P(Rehearsal, CountsTheRanksThatAFullWalkMeets) {
  const json::object zero = json::parse(GetParam()).as_object();
  for (const int stage : {1, 2, 3}) {
    for (const int ranks : {1, 2, 3, 4, 7, 8, 16, 31, 32, 64}) {
      for (const int rank : some_ranks(ranks)) {
        for (const DType dtype : {DType::bf16, DType::fp16}) {
          expect_same({stage, ranks, 1, 3, dtype, false, zero}, rank);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Knobs, Rehearsal,
    testing::Values(R"({})", R"({"overlap_comm": true, "reduce_bucket_size": 100})",
                    R"({"reduce_bucket_size": 7, "stage3_prefetch_bucket_size": 50,
                        "stage3_max_live_parameters": 300, "stage3_max_reuse_distance": 40})",
                    R"({"reduce_scatter": false, "round_robin_gradients": true})",
                    R"({"contiguous_gradients": false, "overlap_comm": true})",
                    R"({"use_multi_rank_bucket_allreduce": false})",
                    R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true,
                        "reduce_bucket_size": 100, "round_robin_gradients": true})",
                    R"({"use_multi_rank_bucket_allreduce": true, "reduce_bucket_size": 5})",
                    R"({"stage3_param_persistence_threshold": 10, "sub_group_size": 100})"));

TEST(RehearsalOfParts, CountsQuantisedAndPartialGroupsAsAFullWalkDoes) {
  for (const char* text : {R"({"zero_hpz_partition_size": 2})", R"({"mics_shard_size": 2})"}) {
    const json::object zero = json::parse(text).as_object();
    for (const int ranks : {4, 16, 64}) {
      for (const int accumulation : {1, 2, 3, 4, 7}) {
        expect_same({3, ranks, 1, accumulation, DType::bf16, false, zero}, ranks / 2);
      }
    }
  }
}

TEST(RehearsalOfParts, CountsNodesAsAFullWalkDoes) {
  for (const int devices : {1, 2}) {  // of six or three nodes
    TinyExperiment tiny{3, 6, 1, 4, DType::fp16, true, {}, test::even_model()};
    tiny.zero["zero_quantized_gradients"] = true;
    tiny.devices_per_node = devices;
    expect_same(tiny, 5);
  }
}

// Would take hours otherwise.
TEST(RehearsalOfParts, TakesAsLongForAnyNumberOfMicroStepsAndRanks) {
  constexpr int kMany = 100'000;
  for (const int stage : {0, 1, 2, 3}) {
    TinyExperiment tiny{stage, kMany, 1, 1'000'000'000, DType::fp16, false, {}};
    tiny.zero["use_multi_rank_bucket_allreduce"] = false;
    const auto dry = std::get<Measured>(dry_run(tiny.make(), kMany - 1).outcome);
    EXPECT_GT(dry.peak_memory.allocated, 0U);
  }
}

}  // namespace
}  // namespace dstune::rehearsal_test
