// Stage 3 with zero_quantized_weights: what it sends and holds, and that it still trains.
#include <iostream>
#include <variant>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/oracle/memory_model.hpp"
#include "tests/support/communication_simulation.hpp"
#include "tests/support/even_model.hpp"
#include "tests/support/tiny_experiment.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::quantized_weights_test {
namespace {

using test::even_model;
using test::TinyExperiment;

const char* kKnobs[] = {
    R"({})",
    R"({"stage3_param_persistence_threshold": 0})",
    R"({"stage3_param_persistence_threshold": 0, "stage3_max_live_parameters": 0,
        "stage3_max_reuse_distance": 0})",
    R"({"stage3_param_persistence_threshold": 100, "stage3_prefetch_bucket_size": 5000,
        "stage3_max_live_parameters": 20000, "stage3_max_reuse_distance": 8000})",
    R"({"stage3_param_persistence_threshold": 100, "stage3_prefetch_bucket_size": 0})",
    R"({"stage3_param_persistence_threshold": 48, "stage3_prefetch_bucket_size": 3000,
        "stage3_use_all_reduce_for_fetch_params": true, "stage3_max_reuse_distance": 0})",
    R"({"stage3_param_persistence_threshold": 48, "stage3_prefetch_bucket_size": 3000,
        "zero_hpz_partition_size": 3, "stage3_max_reuse_distance": 0})"};

std::vector<TinyExperiment> experiments() {
  std::vector<TinyExperiment> all;
  for (const char* knobs : kKnobs) {
    for (const int ranks : {1, 2, 3, 6}) {
      for (const int accumulation : {1, 2}) {
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
          json::object zero = json::parse(knobs).as_object();
          zero["zero_quantized_weights"] = true;
          zero["reduce_bucket_size"] = 6000;
          all.push_back({3, ranks, 1, accumulation, dtype, true, zero, even_model()});
        }
      }
    }
  }
  return all;
}

Measured measured(const Experiment& experiment, int rank) {
  return std::get<Measured>(dry_run(experiment, rank).outcome);
}

TEST(QuantizedWeights, AreSentAsInt8WithOneStepAGroupAndGatheredAsOtherwise) {
  int checked = 0;
  for (const TinyExperiment& tiny : experiments()) {
    const int rank = checked % tiny.ranks;

    const CollectiveCounts counts = measured(tiny.make(), rank).ledger.counts();

    EXPECT_EQ(counts, test::CommunicationSimulation(tiny).counts()) << tiny.name();
    ++checked;
  }
  std::cout << checked << " experiments checked\n";
}

TEST(QuantizedWeights, HoldWhatTheWalkSays) {
  int checked = 0;
  for (const TinyExperiment& tiny : experiments()) {
    const Experiment experiment = tiny.make();
    const StepConfig config = experiment.ds_config.step();
    const auto parameters = make_model_parameters(tiny.model);
    for (int rank = 0; rank < tiny.ranks; ++rank, ++checked) {
      const MemoryUse use = measured(experiment, rank).peak_memory.categories;

      const MemoryUse walk =
          oracle::predict_model_states(config, parameters, tiny.ranks, rank, 0).peak;
      for (const MemoryCategory category :
           {MemoryCategory::parameters, MemoryCategory::gradients, MemoryCategory::optimizer,
            MemoryCategory::buckets, MemoryCategory::temporaries}) {
        EXPECT_EQ(use.at(category), walk.at(category)) << name_of(category) << ": " << tiny.name();
      }
    }
  }
  std::cout << checked << " ranks checked\n";
}

TEST(QuantizedWeights, HalveTheBytesOfGathersIn16Bits) {
  const auto bytes = [](bool quantized) {
    const json::object zero = {{"stage3_param_persistence_threshold", 0},
                               {"zero_quantized_weights", quantized}};
    const TinyExperiment tiny{3, 2, 1, 1, DType::bf16, true, zero, even_model()};
    auto counts = measured(tiny.make(), 0).ledger.counts();
    return static_cast<double>(test::count_of(counts, CollectiveKind::all_gather).bytes);
  };

  EXPECT_NEAR(bytes(true) / bytes(false), 0.5, 0.002);
}

RunSettings even_settings() {
  RunSettings settings = test::tiny_settings();
  settings.model = even_model();
  settings.model.initializer_range = 0.2;
  return settings;
}

json::object training(const char* precision, bool quantized) {
  json::object config = json::parse(R"({
    "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
    "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "eps": 1e-3}},
    "zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 100,
                          "stage3_prefetch_bucket_size": 5000, "reduce_bucket_size": 6000}
  })")
                            .as_object();
  config["zero_optimization"].as_object()["zero_quantized_weights"] = quantized;
  if (std::string_view(precision) != "fp32") config[precision] = {{"enabled", true}};
  if (std::string_view(precision) == "fp16") config["fp16"].as_object()["loss_scale"] = 128;
  return config;
}

// Weights of 0.2 standard deviation have a largest magnitude of about 0.8 in a group, so a step of
// 0.006, 3 % of them: losses agree to that.
TEST(QuantizedWeights, TrainAsOthersDoWithinTheirStep) {
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    for (const int ranks : {2, 3}) {
      const auto run = [&](bool quantized) {
        return test::run_training(make_step_config(training(precision, quantized)), ranks, 3,
                                  even_settings());
      };

      const test::TrainingRun quantized = run(true);
      const test::TrainingRun exact = run(false);

      EXPECT_LT(test::largest_difference(quantized.losses, exact.losses), 0.03) << precision;
      EXPECT_NE(quantized.losses, exact.losses);
      EXPECT_LT(exact.losses.back(), exact.losses.front());
      EXPECT_LT(quantized.losses.back(), quantized.losses.front());
    }
  }
}

// Sizes of 6 to 174 elements: no shard is a multiple of eight.
TEST(QuantizedWeights, SkipAnExperimentThatDeepSpeedRefuses) {
  TinyExperiment tiny{3, 2, 1, 1, DType::bf16, true, {{"zero_quantized_weights", true}}};

  const Outcome outcome = dry_run(tiny.make(), 0).outcome;

  ASSERT_TRUE(std::holds_alternative<Skipped>(outcome));
  EXPECT_EQ(std::get<Skipped>(outcome).reason,
            "zero_quantized_weights: a message of 87 elements is not a multiple of 8");
}

Ledger ledger_with(const json::object& zero, int stage, int ranks) {
  const TinyExperiment tiny{stage, ranks, 1, 2, DType::bf16, true, zero, even_model()};
  return measured(tiny.make(), 0).ledger;
}

TEST(QuantizationKnobs, ChangeNothingWhereDeepSpeedDoesNotReadThem) {
  const json::object all = {{"zero_quantized_weights", true},
                            {"zero_quantized_nontrainable_weights", true},
                            {"zero_quantized_gradients", true},
                            {"zeropp_loco_param", {{"err_beta", 0.8}}}};

  for (const int stage : {0, 1, 2}) {
    EXPECT_EQ(ledger_with(all, stage, 2), ledger_with({}, stage, 2)) << stage;
  }
  EXPECT_EQ(ledger_with({{"zero_quantized_nontrainable_weights", true}}, 3, 2),
            ledger_with({}, 3, 2));
  EXPECT_EQ(ledger_with({{"zero_quantized_weights", true}}, 3, 1), ledger_with({}, 3, 1));
}

}  // namespace
}  // namespace dstune::quantized_weights_test
