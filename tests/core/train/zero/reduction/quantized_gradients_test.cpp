// Stage 3 with zero_quantized_gradients: what it sends and holds, and that it still trains.
#include <iostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/oracle/memory_model.hpp"
#include "tests/support/communication_simulation.hpp"
#include "tests/support/even_model.hpp"
#include "tests/support/tiny_experiment.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::quantized_gradients_test {
namespace {

using test::even_model;
using test::TinyExperiment;

const char* kKnobs[] = {R"({"reduce_bucket_size": 6000})",
                        R"({"reduce_bucket_size": 500})",
                        R"({"reduce_bucket_size": 50000, "overlap_comm": false})",
                        R"({"reduce_bucket_size": 6000, "contiguous_gradients": false})",
                        R"({"reduce_bucket_size": 6000, "reduce_scatter": false})",
                        R"({"reduce_bucket_size": 6000, "zero_hpz_partition_size": 2,
        "stage3_param_persistence_threshold": 0, "stage3_max_reuse_distance": 0})"};

TinyExperiment experiment(json::object zero, int ranks, int devices, int accumulation = 1) {
  zero["zero_quantized_gradients"] = true;
  TinyExperiment tiny{3, ranks, 1, accumulation, DType::fp16, true, std::move(zero), even_model()};
  tiny.devices_per_node = devices;
  return tiny;
}

/// Ranks and devices of a node: also one node, fewer ranks than devices, and nodes not known.
std::vector<TinyExperiment> experiments() {
  const std::pair<int, int> shapes[] = {{2, 1}, {4, 2}, {6, 2}, {6, 3}, {4, 4}, {2, 8}, {4, 0}};
  std::vector<TinyExperiment> all;
  for (const char* knobs : kKnobs) {
    for (const auto& [ranks, devices] : shapes) {
      for (const int accumulation : {1, 2}) {
        all.push_back(experiment(json::parse(knobs).as_object(), ranks, devices, accumulation));
      }
    }
  }
  return all;
}

Measured measured(const TinyExperiment& tiny, int rank) {
  return std::get<Measured>(dry_run(tiny.make(), rank).outcome);
}

TEST(QuantizedGradients, TravelInTwoHopsOfInt4TensorByTensor) {
  int checked = 0;
  for (const TinyExperiment& tiny : experiments()) {
    const CollectiveCounts counts = measured(tiny, checked % tiny.ranks).ledger.counts();

    EXPECT_EQ(counts, test::CommunicationSimulation(tiny).counts())
        << tiny.name() << " " << tiny.devices_per_node;
    ++checked;
  }
  std::cout << checked << " experiments checked\n";
}

TEST(QuantizedGradients, HoldWhatTheWalkSays) {
  int checked = 0;
  for (const TinyExperiment& tiny : experiments()) {
    const StepConfig config = make_step_config(tiny.make());
    const auto parameters = make_model_parameters(tiny.model);
    for (int rank = 0; rank < tiny.ranks; ++rank, ++checked) {
      const MemoryUse use = measured(tiny, rank).peak_memory.categories;

      const MemoryUse walk =
          oracle::predict_model_states(config, parameters, tiny.ranks, rank, 0).peak;
      for (const MemoryCategory category : {MemoryCategory::parameters, MemoryCategory::gradients,
                                            MemoryCategory::buckets, MemoryCategory::temporaries}) {
        EXPECT_EQ(use.at(category), walk.at(category))
            << name_of(category) << ": " << tiny.name() << " " << tiny.devices_per_node;
      }
    }
  }
  std::cout << checked << " ranks checked\n";
}

TEST(QuantizedGradients, AreAsOthersOnOneNode) {
  for (const int devices : {0, 4, 8}) {
    TinyExperiment plain = experiment({}, 4, devices);
    plain.zero["zero_quantized_gradients"] = false;

    EXPECT_EQ(measured(experiment({}, 4, devices), 1).ledger, measured(plain, 1).ledger);
  }
}

std::string reason_of(const TinyExperiment& tiny) {
  const Outcome outcome = dry_run(tiny.make(), 0).outcome;
  return std::holds_alternative<Skipped>(outcome) ? std::get<Skipped>(outcome).reason : "none";
}

TEST(QuantizedGradients, SkipAnExperimentThatDeepSpeedGarblesOrRefuses) {
  TinyExperiment uneven = experiment({}, 4, 2);
  uneven.model.vocab_size = 66;  // rows of 48 elements: as many groups, which 4 does not divide
  TinyExperiment in_bf16 = experiment({}, 4, 2);
  in_bf16.dtype = DType::bf16;

  EXPECT_EQ(reason_of(uneven),
            "zero_quantized_gradients: DeepSpeed cannot deal the gradient of "
            "transformer.wte.weight out evenly to 4 ranks");
  EXPECT_EQ(reason_of(in_bf16),
            "zero_quantized_gradients: DeepSpeed reads gradients as fp16, whatever they are: bf16");
  EXPECT_EQ(reason_of(experiment({}, 6, 4)),
            "zero_quantized_gradients: 6 ranks do not fill nodes of 4 devices");
}

// 15 levels of a gradient: its norm stays within a few percent and the losses near the exact ones.
TEST(QuantizedGradients, TrainAsOthersDoWithinTheirSteps) {
  RunSettings settings = test::tiny_settings();
  settings.model = even_model();
  settings.model.initializer_range = 0.2;
  const auto run = [&](bool quantized, int devices) {
    json::object config = json::parse(R"({
      "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,
      "optimizer": {"type": "AdamW", "params": {"lr": 0.01, "eps": 1e-3}},
      "fp16": {"enabled": true, "loss_scale": 128},
      "zero_optimization": {"stage": 3, "reduce_bucket_size": 6000}
    })")
                              .as_object();
    config["zero_optimization"].as_object()["zero_quantized_gradients"] = quantized;
    StepConfig step = make_step_config(config);
    step.devices_per_node = devices;
    return test::run_training(step, 4, 3, settings);
  };

  const test::TrainingRun exact = run(false, 0);
  for (const int devices : {1, 2}) {
    const test::TrainingRun quantized = run(true, devices);

    EXPECT_LT(test::largest_difference(quantized.losses, exact.losses), 0.02) << devices;
    EXPECT_LT(test::largest_difference(quantized.norms, exact.norms), 0.1) << devices;
    EXPECT_NE(quantized.norms, exact.norms);
    EXPECT_LT(quantized.losses.back(), quantized.losses.front());
  }
}

}  // namespace
}  // namespace dstune::quantized_gradients_test
