// Calls, elements and bytes of stage 3 in one optimizer step, against docs/deepspeed-step.md,
// "Gathers of stage 3" and "Reductions of stage 3".
#include <cstdint>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/communication_simulation.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::sharded_communication_test {
namespace {

using test::count_of;
using test::TinyExperiment;

CollectiveCounts counts_of(const TinyExperiment& tiny, int rank) {
  return std::get<Measured>(dry_run(tiny.make(), rank).outcome).ledger.counts();
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
    experiment.ds_config.set("communication_data_type", type);

    auto counts = std::get<Measured>(dry_run(experiment, 0).outcome).ledger.counts();

    const CollectiveCount& sums = count_of(counts, CollectiveKind::reduce_scatter);
    EXPECT_EQ(sums.bytes, sums.elements * (std::string(type) == "fp32" ? 4 : 2)) << type;
  }
}

}  // namespace
}  // namespace dstune::sharded_communication_test
