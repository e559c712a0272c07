// Calls, elements and bytes of one optimizer step, against zero-step.md 3.
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

namespace dstune {
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

// zero-step.md 3.2 and 3.3, volumes, in bf16 with everything divisible by four ranks.
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

// Thresholds between the sizes of tensors (6 to 174) and limits between those of layers (354) and
// the model (910).
std::vector<json::object> stage_3_knobs() {
  std::vector<json::object> all;
  for (const std::int64_t prefetch : {0, 1, 50, 400, 100'000}) {
    for (const std::int64_t live : {0, 100, 500, 100'000}) {
      for (const std::int64_t reuse : {0, 200, 900, 100'000}) {
        for (const std::int64_t persistent : {0, 10, 70, 1000}) {
          all.push_back({{"stage3_prefetch_bucket_size", prefetch},
                         {"stage3_max_live_parameters", live},
                         {"stage3_max_reuse_distance", reuse},
                         {"stage3_param_persistence_threshold", persistent},
                         {"reduce_bucket_size", 100}});
        }
      }
    }
  }
  return all;
}

TEST(StageThree, GathersAsItsCoordinatorSaysWithEveryMethod) {
  int checked = 0;
  for (json::object zero : stage_3_knobs()) {
    const char* kMethods[] = {"none", "stage3_allgather_sequential",
                              "stage3_use_all_reduce_for_fetch_params"};
    zero[kMethods[checked % 3]] = true;
    zero.erase("none");
    zero["contiguous_gradients"] = checked % 5 != 0;
    zero["reduce_scatter"] = checked % 2 == 0;
    const TinyExperiment tiny{3, 2 + checked % 3, 1, 1 + checked % 4 / 2, DType::bf16, false, zero};

    const CollectiveCounts counts = counts_of(tiny, checked % tiny.ranks);

    EXPECT_EQ(counts, test::CommunicationSimulation(tiny).counts()) << tiny.name();
    ++checked;
  }
  EXPECT_GE(checked, 300);
  std::cout << checked << " experiments checked\n";
}

TEST(StageThree, CommunicatesInPartsOfTheGroupAsSimulated) {
  int checked = 0;
  for (json::object zero : stage_3_knobs()) {
    const int ranks = 4 + 2 * (checked % 3);
    zero[checked % 2 == 0 ? "zero_hpz_partition_size" : "mics_shard_size"] = 2;
    zero["stage3_use_all_reduce_for_fetch_params"] = checked % 3 == 0;
    const TinyExperiment tiny{3, ranks, 1, 1 + checked % 4 / 2, DType::bf16, false, zero};
    const int rank = checked % ranks;

    const Ledger ledger = std::get<Measured>(dry_run(tiny.make(), rank).outcome).ledger;

    test::CommunicationSimulation simulation(tiny, rank);
    EXPECT_EQ(ledger.counts(), simulation.counts()) << tiny.name();
    double sent = 0;
    for (const CollectiveLine& line : ledger.collectives()) sent += line.wire_bytes;
    EXPECT_NEAR(sent / simulation.sent_bytes(), 1, 1e-9) << tiny.name();
    ++checked;
  }
  EXPECT_GE(checked, 300);
  std::cout << checked << " experiments checked\n";
}

/// gpt2-xl, and a GPT-2 of about 7 B parameters.
std::vector<ModelSpec> large_models() {
  std::vector<ModelSpec> models(2);
  models[0].hidden_size = 1600;
  models[0].num_layers = 48;
  models[0].num_heads = 25;
  models[1].hidden_size = 4096;
  models[1].num_layers = models[1].num_heads = 32;
  for (ModelSpec& model : models) model.inner_size = 4 * model.hidden_size;
  return models;
}

TEST(StageThree, OfLargeModelsCommunicatesAsSimulatedWithDefaultsAndWithoutLimits) {
  const json::object keys[] = {
      {}, {{"stage3_max_live_parameters", 0}, {"stage3_max_reuse_distance", 0}}};
  for (const ModelSpec& model : large_models()) {
    for (const json::object& zero : keys) {
      TinyExperiment tiny{3, 8, 1, 1, DType::bf16, false, zero};
      tiny.model = model;
      Experiment experiment = tiny.make();
      experiment.settings.memory_limit = Bytes{1} << 60U;

      const auto outcome = std::get<Measured>(dry_run(experiment, 3).outcome);

      EXPECT_EQ(outcome.ledger.counts(), test::CommunicationSimulation(tiny, 3).counts());
    }
  }
}

// Without limits every use is gathered for itself; nothing but one module's tensors, those that
// stay and the embedding that waits for its backward are there at once.
TEST(StageThree, WithoutLimitsHoldsLittleMoreThanOneModule) {
  for (const ModelSpec& model : large_models()) {
    TinyExperiment tiny{3,
                        8,
                        1,
                        1,
                        DType::bf16,
                        false,
                        {{"stage3_max_live_parameters", 0}, {"stage3_max_reuse_distance", 0}}};
    tiny.model = model;
    Experiment experiment = tiny.make();
    experiment.settings.memory_limit = Bytes{1} << 60U;
    const auto parameters = make_model_parameters(model);
    const std::int64_t embeddings = parameters.tensors[0].numel() + parameters.tensors[1].numel();

    const auto ledger = std::get<Measured>(dry_run(experiment, 0).outcome).ledger;

    EXPECT_GE(ledger.peak_live_elements(), embeddings);
    EXPECT_LT(ledger.peak_live_elements(), embeddings + 10'000'000);
  }
}

std::uint64_t calls_among(const Ledger& ledger, int ranks, CollectiveKind kind) {
  std::uint64_t calls = 0;
  for (const CollectiveLine& line : ledger.collectives()) {
    if (line.ranks == ranks && line.kind == kind) calls += line.calls;
  }
  return calls;
}

// With no tensor kept, forward gathers among all, backward among the small group: 16 modules with
// parameters each, whereof lm_head's was kept since wte ran.
TEST(StageThree, GathersSecondaryShardsInTheSmallGroup) {
  const TinyExperiment tiny{3,
                            4,
                            1,
                            1,
                            DType::fp32,
                            false,
                            {{"zero_hpz_partition_size", 2},
                             {"stage3_param_persistence_threshold", 0},
                             {"stage3_max_live_parameters", 0},
                             {"stage3_max_reuse_distance", 0}}};

  const Ledger ledger = std::get<Measured>(dry_run(tiny.make(), 0).outcome).ledger;

  EXPECT_EQ(calls_among(ledger, 4, CollectiveKind::all_gather), 15U);
  EXPECT_EQ(calls_among(ledger, 2, CollectiveKind::all_gather), 17U);
}

TEST(StageThree, WithMicsNothingButTheReplicasAverageLeavesTheSmallGroup) {
  const TinyExperiment tiny{3, 6, 1, 3, DType::fp32, false, {{"mics_shard_size", 2}}};

  const Ledger ledger = std::get<Measured>(dry_run(tiny.make(), 0).outcome).ledger;

  for (const CollectiveLine& line : ledger.collectives()) {
    const bool among_replicas = line.ranks == 3;
    EXPECT_TRUE(among_replicas || line.ranks == 2);
    if (!among_replicas) continue;
    EXPECT_EQ(line.kind, CollectiveKind::all_reduce);
    EXPECT_EQ(line.purpose, Purpose::gradients);
    EXPECT_EQ(line.calls, 1U);  // of one bucket, in spite of three micro-steps
  }
}

TEST(StageThree, SkipsGroupsThatDoNotDivideTheRanks) {
  for (const char* key : {"zero_hpz_partition_size", "mics_shard_size"}) {
    const TinyExperiment tiny{3, 4, 1, 1, DType::fp32, false, {{key, 3}}};

    EXPECT_TRUE(std::holds_alternative<Skipped>(dry_run(tiny.make(), 0).outcome)) << key;
  }
}

// With nothing to limit it a micro-step gathers every tensor once, but for those that stay.
TEST(StageThree, GathersATensorOncePerMicroStepIfItMayStay) {
  const TinyExperiment tiny{
      3, 2, 1, 3, DType::fp32, false, {{"stage3_param_persistence_threshold", 20}}};
  std::int64_t gathered = 0;
  for (const auto& tensor : make_model_parameters(tiny.model).tensors) {
    gathered += (tensor.numel() <= 20 ? 1 : 3) * ((tensor.numel() + 1) / 2 * 2);
  }

  CollectiveCounts counts = counts_of(tiny, 0);

  EXPECT_EQ(count_of(counts, CollectiveKind::all_gather).elements,
            static_cast<std::uint64_t>(gathered));
}

TEST(StageThree, ReducesInTheTypeOfCommunication) {
  for (const char* type : {"fp32", "bf16", "fp16"}) {
    TinyExperiment tiny{3, 2, 1, 2, DType::bf16, false, {{"reduce_bucket_size", 100}}};
    Experiment experiment = tiny.make();
    experiment.ds_config["communication_data_type"] = type;

    auto counts = std::get<Measured>(dry_run(experiment, 0).outcome).ledger.counts();

    const CollectiveCount& sums = count_of(counts, CollectiveKind::reduce_scatter);
    EXPECT_EQ(sums.bytes, sums.elements * (std::string(type) == "fp32" ? 4 : 2)) << type;
  }
}

// zero-step.md 3.2: HF's "auto" is K = h^2, then every weight of a block is a call of its own and
// small tensors go together between them.
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
  experiment.ds_config["gradient_clipping"] = 0.0;

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
}  // namespace dstune
