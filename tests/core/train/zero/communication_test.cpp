// Calls, elements and bytes of one optimizer step, against docs/deepspeed-step.md, "Buckets" to
// "What is sent".
#include <cstdint>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/zero/replicated_engine.hpp"
#include "tests/support/communication_simulation.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::communication_test {
namespace {

using test::count_of;
using test::TinyExperiment;

CollectiveCounts counts_of(const TinyExperiment& tiny, int rank) {
  return std::get<Measured>(dry_run(tiny.make(), rank).outcome).ledger.counts();
}

class Communication : public testing::TestWithParam<int> {
 protected:
  /// One experiment for each of everything that communication depends on.
  static std::vector<TinyExperiment> experiments(int stage, std::int64_t bucket) {
    std::vector<TinyExperiment> all;
    for (const int ranks : {1, 2, 3, 4, 8}) {
      for (const int accumulation : {1, 3}) {
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
          for (const bool client : {false, true}) {
            for (const bool scatter : {false, true}) {
              for (const bool overlap : {false, true}) {
                const json::object zero = {{"reduce_bucket_size", bucket},
                                           {"reduce_scatter", scatter},
                                           {"overlap_comm", overlap},
                                           {"sub_group_size", bucket}};
                all.push_back({stage, ranks, 1, accumulation, dtype, client, zero});
              }
            }
          }
        }
      }
    }
    return all;
  }
};

// The tiny model has 910 parameters; its largest tensor 174, its smallest 6.
TEST_P(Communication, OfOneStepIsTheSimulations) {
  int checked = 0;
  for (const std::int64_t bucket : {500'000'000, 911, 910, 200, 174, 108, 40, 5}) {
    for (const TinyExperiment& tiny : experiments(GetParam(), bucket)) {
      const int rank = checked % tiny.ranks;

      const CollectiveCounts counts = counts_of(tiny, rank);

      CollectiveCounts expected = test::CommunicationSimulation(tiny).counts();
      for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
        EXPECT_EQ(counts[kind].calls, expected[kind].calls) << tiny.name() << ", kind " << kind;
        EXPECT_EQ(counts[kind].elements, expected[kind].elements) << tiny.name();
        EXPECT_EQ(counts[kind].bytes, expected[kind].bytes) << tiny.name();
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 100);
  std::cout << checked << " experiments checked\n";
}

INSTANTIATE_TEST_SUITE_P(Stages, Communication, testing::Values(0, 1, 2, 3));

// docs/deepspeed-step.md, "What is sent", in bf16 with everything divisible by four ranks.
TEST(CommunicationVolume, IsTheTablesPerStage) {
  const auto wire = [](int stage, std::int64_t accumulation) {
    const json::object zero = {{"stage3_param_persistence_threshold", 0},
                               {"stage3_max_live_parameters", 0},
                               {"stage3_max_reuse_distance", 0}};
    TinyExperiment tiny{stage, 4, 1, accumulation, DType::bf16, false, zero};
    tiny.model.vocab_size = 32;
    tiny.model.max_positions = 8;
    tiny.model.hidden_size = 8;
    tiny.model.inner_size = 32;
    const auto counts = counts_of(tiny, 0);
    const auto parameters = make_model_parameters(tiny.model);
    double bytes = 0;
    for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      bytes += wire_bytes(static_cast<CollectiveKind>(kind), counts[kind].bytes, 4);
    }
    const std::uint64_t scalars = stage == 0 ? 0 : stage == 3 ? 8 : 5;
    bytes -= wire_bytes(CollectiveKind::all_reduce, scalars, 4);
    // In parts of (N - 1) / N e P; stage 3 gathers the tied embedding twice per pass.
    const double tied = 2.0 * 2 * static_cast<double>(parameters.tensors[0].numel());
    if (stage == 3) bytes -= static_cast<double>(accumulation) * 0.75 * tied;
    return bytes / (0.75 * 2 * static_cast<double>(parameters.total()));
  };

  EXPECT_DOUBLE_EQ(wire(0, 1), 2);
  EXPECT_DOUBLE_EQ(wire(0, 3), 2);
  EXPECT_DOUBLE_EQ(wire(1, 3), 2 + 1);
  EXPECT_DOUBLE_EQ(wire(2, 1), 2 + 1);
  EXPECT_DOUBLE_EQ(wire(2, 3), 3 * 2 + 1);
  EXPECT_DOUBLE_EQ(wire(3, 1), 2 + 1);
  EXPECT_DOUBLE_EQ(wire(3, 3), 3 * (2 + 1));
}

// docs/deepspeed-step.md, "Buckets": HF's "auto" is K = h^2, then every weight of a block is a call
// of its own and small tensors go together between them.
TEST(CommunicationCalls, WithBucketsOfHiddenSizeSquaredAreOnePerWeight) {
  TinyExperiment tiny{2, 1, 1, 1, DType::fp32, false, {{"reduce_bucket_size", 64}}};
  tiny.model.hidden_size = 8;
  tiny.model.inner_size = 32;
  tiny.model.vocab_size = 50;
  tiny.model.max_positions = 16;
  constexpr std::uint64_t kPerLayer = 4 + 4;    // weights, and groups of small ones before them
  constexpr std::uint64_t kAround = 1 + 1 + 1;  // first layer's ln_1, wpe, wte
  constexpr std::uint64_t kNorm = 1;

  CollectiveCounts counts = counts_of(tiny, 0);

  EXPECT_EQ(count_of(counts, CollectiveKind::all_reduce).calls, 2 * kPerLayer + kAround + kNorm);
}

TEST(CommunicationCalls, WithoutClippingStageZeroHasNoNorm) {
  Experiment experiment = TinyExperiment{.stage = 0, .ranks = 2}.make();
  experiment.ds_config.set("gradient_clipping", 0.0);

  auto counts = std::get<Measured>(dry_run(experiment, 0).outcome).ledger.counts();

  EXPECT_EQ(count_of(counts, CollectiveKind::all_reduce).calls, 1U);
}

TEST(PackReplicated, ClosesABucketAfterTheTensorThatExceedsTheLimit) {
  using Ends = std::vector<std::size_t>;

  EXPECT_EQ(pack_replicated({4, 4, 4}, 100), (Ends{3}));
  EXPECT_EQ(pack_replicated({4, 4, 4}, 8), (Ends{3}));  // reached is not exceeded
  EXPECT_EQ(pack_replicated({4, 5, 4}, 8), (Ends{2, 3}));
  EXPECT_EQ(pack_replicated({9, 1, 9, 1}, 8), (Ends{1, 3, 4}));
  EXPECT_EQ(pack_replicated({4, 4, 1}, 8), (Ends{3}));
  EXPECT_EQ(pack_replicated({}, 8), Ends{});
}

}  // namespace
}  // namespace dstune::communication_test
