#include <algorithm>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/train/layers/gpt2.hpp"
#include "core/train/memory_model.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/training_step.hpp"
#include "core/train/zero/shard_groups.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune {
namespace {

using test::TinyExperiment;

std::int64_t attention_scratch(const Experiment& experiment, const StepConfig& config,
                               const Device* device) {
  const ModelSpec& model = experiment.settings.model;
  if (device == nullptr) return 0;
  return device->attention_workspace({.batch = config.micro_batch,
                                      .sequence = experiment.settings.sequence_length,
                                      .heads = model.num_heads,
                                      .head_size = model.head_size()});
}

Bytes activations(const Experiment& experiment, const StepConfig& config) {
  const RunSettings& settings = experiment.settings;
  // Without scratch: what the category alone needs at its highest.
  return predict_activations(settings.model, config.micro_batch, settings.sequence_length,
                             config.dtype)
             .peak +
         8 * static_cast<Bytes>(config.micro_batch * settings.sequence_length);  // tokens, int64
}

/// The peak of every category by formula: model states, activations and tokens.
MemoryUse predict(const Experiment& experiment, int rank, const Device* device) {
  const StepConfig config = make_step_config(experiment.ds_config);
  const auto parameters = make_model_parameters(experiment.settings.model);
  const auto scratch = static_cast<Bytes>(attention_scratch(experiment, config, device));
  MemoryUse use =
      predict_model_states(config, parameters, experiment.ranks, rank, 4 * scratch).peak;
  use.at(MemoryCategory::activations) = activations(experiment, config);
  return use;
}

void expect_equal(const MemoryUse& measured, const MemoryUse& predicted, const std::string& what) {
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    EXPECT_EQ(measured.bytes[i], predicted.bytes[i])
        << name_of(static_cast<MemoryCategory>(i)) << ": " << what;
  }
}

/// Every rank of the experiment, dry.
int check_dry(const TinyExperiment& tiny) {
  const Experiment experiment = tiny.make();
  for (int rank = 0; rank < tiny.ranks; ++rank) {
    const auto outcome = dry_run(experiment, rank).outcome;
    expect_equal(std::get<Measured>(outcome).peak_memory.categories,
                 predict(experiment, rank, nullptr), concat(tiny.name(), ", rank ", rank));
  }
  return tiny.ranks;
}

std::vector<TinyExperiment> all_combinations() {
  std::vector<TinyExperiment> all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      for (const int accumulation : {1, 2, 3}) {
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
          for (const bool client : {false, true}) {
            all.push_back({stage, ranks, 1, accumulation, dtype, client, {}});
          }
        }
      }
    }
  }
  return all;
}

std::vector<TinyExperiment> with(const json::object& zero) {
  auto all = all_combinations();
  for (TinyExperiment& tiny : all) tiny.zero = zero;
  return all;
}

class ModelStates : public testing::TestWithParam<const char*> {};

// Buckets from larger than the model to smaller than any tensor, sub-groups, and the knobs that
// change what lives when.
TEST_P(ModelStates, PeaksOfADryRunAreTheFormulas) {
  const json::object zero = json::parse(GetParam()).as_object();
  int checked = 0;

  for (const TinyExperiment& tiny : with(zero)) checked += check_dry(tiny);

  std::cout << checked << " ranks of " << all_combinations().size() << " experiments checked\n";
}

INSTANTIATE_TEST_SUITE_P(
    Zero, ModelStates,
    testing::Values(R"({"reduce_bucket_size": 500000000})", R"({"reduce_bucket_size": 150})",
                    R"({"reduce_bucket_size": 40, "overlap_comm": true})",
                    R"({"reduce_bucket_size": 100, "overlap_comm": false})",
                    R"({"reduce_bucket_size": 5, "overlap_comm": true})",
                    R"({"reduce_bucket_size": 70, "reduce_scatter": false})",
                    R"({"reduce_bucket_size": 120, "sub_group_size": 30})",
                    R"({"reduce_bucket_size": 130, "round_robin_gradients": true})"));

/// Limits between the sizes of tensors (6 to 174), layers (354) and the model (910).
const char* kStage3Knobs[] = {
    R"({"stage3_param_persistence_threshold": 0, "reduce_bucket_size": 100})",
    R"({"stage3_param_persistence_threshold": 0, "stage3_max_live_parameters": 0,
        "stage3_max_reuse_distance": 0, "reduce_bucket_size": 100})",
    R"({"stage3_param_persistence_threshold": 11, "stage3_prefetch_bucket_size": 40,
        "stage3_max_live_parameters": 300, "stage3_max_reuse_distance": 200})",
    R"({"stage3_param_persistence_threshold": 6, "stage3_prefetch_bucket_size": 150,
        "stage3_max_live_parameters": 500, "stage3_max_reuse_distance": 0,
        "reduce_bucket_size": 70})",
    R"({"stage3_param_persistence_threshold": 20, "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 400, "reduce_bucket_size": 200})",
    R"({"stage3_param_persistence_threshold": 10, "stage3_allgather_sequential": true,
        "stage3_max_live_parameters": 400, "stage3_max_reuse_distance": 100})",
    R"({"stage3_param_persistence_threshold": 10, "stage3_max_reuse_distance": 100,
        "stage3_use_all_reduce_for_fetch_params": true, "stage3_prefetch_bucket_size": 60,
        "stage3_max_live_parameters": 400})",
    R"({"stage3_param_persistence_threshold": 6, "stage3_model_persistence_threshold": 11})",
    R"({"stage3_param_persistence_threshold": 0, "contiguous_gradients": false,
        "reduce_bucket_size": 100, "stage3_prefetch_bucket_size": 60})",
    R"({"contiguous_gradients": false, "reduce_scatter": false, "reduce_bucket_size": 60})",
    R"({"reduce_scatter": false, "reduce_bucket_size": 100,
        "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 60})",
    R"({"leaf_module": {"classes": ["GPT2Attention"]}, "reduce_bucket_size": 60,
        "stage3_param_persistence_threshold": 10, "stage3_prefetch_bucket_size": 60})",
    R"({"zero_hpz_partition_size": 2, "stage3_param_persistence_threshold": 10,
        "stage3_prefetch_bucket_size": 60, "stage3_max_reuse_distance": 100})",
    R"({"zero_hpz_partition_size": 4, "stage3_param_persistence_threshold": 0,
        "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0})",
    R"({"mics_shard_size": 2, "stage3_param_persistence_threshold": 10, "reduce_bucket_size": 100,
        "stage3_prefetch_bucket_size": 60, "stage3_max_reuse_distance": 100})",
    R"({"mics_shard_size": 1, "reduce_bucket_size": 100})",
    R"({"stage3_module_granularity_threshold": 40, "reduce_bucket_size": 60, "sub_group_size": 90,
        "stage3_param_persistence_threshold": 0, "stage3_max_reuse_distance": 300})"};

/// Groups of ranks are as large as asked for.
bool divides(const TinyExperiment& tiny) {
  return unsupported_shard_sizes(make_step_config(tiny.make().ds_config), tiny.ranks).empty();
}

class ShardedStates : public testing::TestWithParam<const char*> {};

TEST_P(ShardedStates, PeaksOfADryRunAreTheWalks) {
  const json::object zero = json::parse(GetParam()).as_object();
  int checked = 0;

  for (const TinyExperiment& tiny : with(zero)) {
    if (tiny.stage == 3 && divides(tiny)) checked += check_dry(tiny);
  }

  std::cout << checked << " ranks checked\n";
}

INSTANTIATE_TEST_SUITE_P(Zero, ShardedStates, testing::ValuesIn(kStage3Knobs));

TEST(ShardedStatesOfOtherTypes, PeaksOfADryRunAreTheWalks) {
  for (const char* zero : kStage3Knobs) {
    for (const char* communication : {"fp32", "bf16"}) {
      for (const char* accumulation : {"fp32", "bf16"}) {
        const TinyExperiment tiny{3, 4, 1, 2, DType::bf16, true, json::parse(zero).as_object()};
        Experiment experiment = tiny.make();
        experiment.ds_config["communication_data_type"] = communication;
        experiment.ds_config["data_types"] = {{"grad_accum_dtype", accumulation}};

        const auto outcome = dry_run(experiment, 1).outcome;

        expect_equal(std::get<Measured>(outcome).peak_memory.categories,
                     predict(experiment, 1, nullptr), concat(tiny.name(), communication));
      }
    }
  }
}

class OtherOptimizers : public testing::TestWithParam<const char*> {};

// DeepSpeed has no Lamb for bf16 without ZeRO.
TEST_P(OtherOptimizers, PeaksOfADryRunAreTheFormulas) {
  int checked = 0;

  for (TinyExperiment& tiny : with({{"reduce_bucket_size", 150}, {"sub_group_size", 100}})) {
    tiny.optimizer = json::parse(GetParam()).as_object();
    const bool is_lamb = tiny.optimizer["type"] == "Lamb";
    if (is_lamb && tiny.stage == 0 && tiny.dtype == DType::bf16) continue;
    if (tiny.accumulation_steps == 1 && tiny.client) checked += check_dry(tiny);
  }

  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Zero, OtherOptimizers,
    testing::Values(R"({"type": "AdamW", "params": {"torch_adam": true}})", R"({"type": "SGD"})",
                    R"({"type": "SGD", "params": {"weight_decay": 0.1}})",
                    R"({"type": "SGD", "params": {"momentum": 0.9, "weight_decay": 0.1}})",
                    R"({"type": "Lion"})", R"({"type": "Adagrad"})", R"({"type": "Lamb"})"));

// Of stages 0 to 2: where gradients wait, how they are averaged, and in which types they travel and
// are added up.
TEST(GradientKnobs, PeaksOfADryRunAreTheFormulas) {
  const char* const zeros[] = {
      R"({"contiguous_gradients": false})",
      R"({"contiguous_gradients": false, "overlap_comm": true})",
      R"({"use_multi_rank_bucket_allreduce": false, "round_robin_gradients": true})",
      R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true})",
      R"({"reduce_scatter": false})",
      R"({"overlap_comm": true})"};
  const char* const roots[] = {
      R"({"communication_data_type": "fp32"})",
      R"({"communication_data_type": "fp16", "data_types": {"grad_accum_dtype": "fp32"}})",
      R"({"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"check_grad_overflow": false}})",
      R"({"data_types": {"grad_accum_dtype": "bf16"}})"};
  int checked = 0;

  for (const char* zero : zeros) {
    for (const char* root : roots) {
      for (const std::int64_t bucket : {500'000'000, 200, 40, 5}) {
        for (TinyExperiment& tiny : with(json::parse(zero).as_object())) {
          if (tiny.stage == 3 || tiny.ranks > 3 || tiny.client != (tiny.ranks == 2)) continue;
          tiny.zero["reduce_bucket_size"] = bucket;
          tiny.root = json::parse(root).as_object();
          if (!make_step_config(tiny.make().ds_config).unsupported.empty()) continue;
          checked += check_dry(tiny);
        }
      }
    }
  }

  EXPECT_GT(checked, 200);
  std::cout << checked << " ranks checked\n";
}

// A vocabulary of one makes the blocks' tensors the largest, a long position table wpe.
TEST(ModelStatesOfOtherShapes, PeaksOfADryRunAreTheFormulas) {
  int checked = 0;

  for (TinyExperiment& tiny : with({{"reduce_bucket_size", 90}})) {
    tiny.model.vocab_size = 5;
    tiny.model.inner_size = 50;
    checked += check_dry(tiny);
    tiny.model.max_positions = 200;
    tiny.model.num_layers = 1;
    checked += check_dry(tiny);
  }

  EXPECT_GT(checked, 0);
}

TEST(ModelStatesOfOtherSettings, UncheckedBf16NeedsNoOverflowTemporaries) {
  TinyExperiment tiny{2, 2, 1, 1, DType::bf16, true, {{"reduce_bucket_size", 5}}};
  Experiment experiment = tiny.make();
  experiment.ds_config["bf16"].as_object()["check_grad_overflow"] = false;

  const auto outcome = dry_run(experiment, 0).outcome;

  expect_equal(std::get<Measured>(outcome).peak_memory.categories, predict(experiment, 0, nullptr),
               "bf16 without check");
}

// The first table of memory_model.hpp.
TEST(PredictModelStates, ResidentBytesAreTheTables) {
  const auto parameters = make_model_parameters(test::tiny_model());
  const auto total = static_cast<Bytes>(parameters.total());
  StepConfig config;
  config.dtype = DType::bf16;
  config.optimizer.client = false;
  config.reduce_bucket_size = 1000;
  const auto resident = [&](int stage) {
    config.stage = stage;
    return predict_model_states(config, parameters, 2, 0).resident;
  };
  Bytes shards = 0;
  for (const auto& tensor : parameters.tensors) {
    shards += (static_cast<Bytes>(tensor.numel()) + 1) / 2;
  }
  const Bytes padded = (total + 3) / 4 * 4;

  EXPECT_EQ(resident(0), (MemoryUse{{2 * total, 0, 12 * total, 0, 0, 0}}));
  EXPECT_EQ(resident(1), (MemoryUse{{2 * padded, 0, 6 * padded, 0, 0, 0}}));
  EXPECT_EQ(resident(2), resident(1));
  config.grad_accum_dtype = DType::fp32;
  EXPECT_EQ(resident(1), (MemoryUse{{2 * padded, 4 * padded, 6 * padded, 0, 0, 0}}));
  EXPECT_EQ(resident(2), (MemoryUse{{2 * padded, 0, 6 * padded, 0, 0, 0}}));
  config.grad_accum_dtype.reset();
  config.param_persistence_threshold = 0;
  EXPECT_EQ(resident(3), (MemoryUse{{2 * shards, 2 * shards, 12 * shards, 2000, 0, 0}}));
  config.param_persistence_threshold = 1000;  // all tensors; padded to two shards each
  EXPECT_EQ(resident(3), (MemoryUse{{6 * shards, 2 * shards, 12 * shards, 2000, 0, 0}}));
  config.contiguous_gradients = false;
  config.grad_accum_dtype = DType::fp32;
  EXPECT_EQ(resident(3), (MemoryUse{{6 * shards, 4 * shards, 12 * shards, 0, 0, 0}}));
}

// zero-step.md 2.6: GB of gpt2 in the step, bf16, defaults, an optimizer section, no activations.
TEST(PredictModelStates, GivesTheReferenceValuesOfGpt2) {
  const auto parameters = make_model_parameters(ModelSpec{});
  StepConfig config;
  config.dtype = DType::bf16;
  config.optimizer.client = false;
  const auto count = static_cast<double>(parameters.total());
  const auto in_step = [&](int stage, int ranks) {
    config.stage = stage;
    const auto resident = predict_model_states(config, parameters, ranks, 0).resident.total();
    // On top: all gradients and 8 bytes of fp32 copies; a rank's gradients, flattened, and in fp32;
    // in stage 3 the gradients are resident.
    const double more = stage == 0 ? 10 * count : (stage == 3 ? 6 : 8) * count / ranks;
    return (static_cast<double>(resident) + more) / 1e9;
  };

  EXPECT_NEAR(in_step(0, 1), 2.99, 0.005);
  EXPECT_NEAR(in_step(1, 1), 2.74, 0.005);
  EXPECT_NEAR(in_step(1, 8), 0.56, 0.005);
  EXPECT_NEAR(in_step(2, 8), 0.56, 0.005);
  EXPECT_NEAR(in_step(3, 1), 3.74, 0.005);
  EXPECT_NEAR(in_step(3, 8), 1.34, 0.005);
}

/// Two steps on the CPU: peaks, and what is left after them.
void check_real(const TinyExperiment& tiny) {
  const Experiment experiment = tiny.make();
  const StepConfig config = make_step_config(experiment.ds_config);
  const auto parameters = make_model_parameters(experiment.settings.model);
  test::run_on_ranks(tiny.ranks, [&](int rank, test::ThreadTeam& team) {
    cpu::CpuDevice device(experiment.settings.memory_limit);
    test::ThreadCollectives collectives(device, team, rank);
    TrainingStep step(experiment.settings, config, device, collectives);

    for (int i = 0; i < 2; ++i) step.run();

    const std::string what = concat(tiny.name(), ", rank ", rank);
    expect_equal(device.memory().peak().categories, predict(experiment, rank, &device), what);
    MemoryUse left = predict_model_states(config, parameters, tiny.ranks, rank).resident;
    left.at(MemoryCategory::activations) = 8 * 2 * 5;  // the tokens
    expect_equal(device.memory().use(), left, what);
  });
}

class RealSteps : public testing::TestWithParam<int> {};

TEST(RealShardedSteps, PeaksOnTheCpuAreTheWalksAndLedgersThoseOfADryRun) {
  for (const char* zero : kStage3Knobs) {
    const TinyExperiment tiny{3, 2, 2, 2, DType::bf16, true, json::parse(zero).as_object()};
    if (!divides(tiny)) continue;
    const Experiment experiment = tiny.make();
    const StepConfig config = make_step_config(experiment.ds_config);
    test::run_on_ranks(2, [&](int rank, test::ThreadTeam& team) {
      cpu::CpuDevice device(experiment.settings.memory_limit);
      test::ThreadCollectives collectives(device, team, rank);
      TrainingStep step(experiment.settings, config, device, collectives);

      for (int i = 0; i < 3; ++i) step.run();

      expect_equal(device.memory().peak().categories, predict(experiment, rank, &device),
                   tiny.name());
      const auto dry = std::get<Measured>(dry_run(experiment, rank, &device).outcome);
      EXPECT_TRUE(device.ledger().same_work(dry.ledger)) << tiny.name();
    });
  }
}

TEST_P(RealSteps, PeaksAndResidentBytesOnTheCpuAreTheFormulas) {
  for (const int ranks : {1, 2, 3}) {
    for (const DType dtype : {DType::fp32, DType::fp16}) {
      check_real({GetParam(), ranks, 2, 2, dtype, ranks == 2, {{"reduce_bucket_size", 100}}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, RealSteps, testing::Values(0, 1, 2, 3));

TEST(RealStepsWithGradientKnobs, PeaksAndResidentBytesOnTheCpuAreTheFormulas) {
  const json::object sums = {{"data_types", {{"grad_accum_dtype", "fp32"}}}};
  const json::object in_fp32 = {{"communication_data_type", "fp32"}};
  const json::object list = {{"contiguous_gradients", false}, {"reduce_bucket_size", 100}};
  const json::object late = {{"overlap_comm", false}, {"reduce_bucket_size", 100}};

  for (const int ranks : {1, 3}) {
    check_real({1, ranks, 2, 2, DType::bf16, true, {}, test::tiny_model(), sums});
    check_real({1, ranks, 2, 2, DType::fp16, false, late, test::tiny_model(), sums});
    check_real({2, ranks, 2, 2, DType::bf16, true, list, test::tiny_model(), in_fp32});
    check_real({0, ranks, 2, 2, DType::fp16, true, {}, test::tiny_model(), in_fp32});
  }
}

}  // namespace
}  // namespace dstune
