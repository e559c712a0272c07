// Stages 1 and 2 with the optimizer in the host's memory: bytes, copies and waits against
// docs/offload.md, and steps that train as those on the device do.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/ledger_sums.hpp"
#include "tests/support/tiny_experiment.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::offloaded_engine_test {
namespace {

using test::config_of;
using test::Copies;
using test::copies;
using test::largest_difference;
using test::run_training;
using test::Split;
using test::TinyExperiment;
using test::waits;

constexpr Bytes kParameters = 910;  // of the tiny model: even, so that one rank pads nothing

Bytes largest_tensor() {
  std::int64_t largest = 0;
  for (const ParameterSpec& tensor : make_model_parameters(test::tiny_model()).tensors) {
    largest = std::max(largest, tensor.numel());
  }
  return static_cast<Bytes>(largest);
}

std::uint64_t tensor_count() { return make_model_parameters(test::tiny_model()).tensors.size(); }

Experiment offloaded(int stage, std::int64_t accumulation, DType dtype, const char* offload,
                     const char* root = "{}") {
  TinyExperiment tiny{stage, 1, 1, accumulation, dtype, false};
  tiny.zero["offload_optimizer"] = parse_json(offload);
  tiny.root = parse_json(root).as_object();
  Experiment experiment = tiny.make();
  experiment.settings.host_memory_limit = kNoLimit;
  return experiment;
}

constexpr const char* kPinned = R"({"device": "cpu"})";
constexpr const char* kPageable = R"({"device": "cpu", "pin_memory": false})";

Measured measured(const Experiment& experiment) {
  return std::get<Measured>(dry_run(experiment, 0).outcome);
}

TEST(HostMemoryOfOffload, IsThatOfTheTable) {
  const Measured pinned = measured(offloaded(2, 1, DType::bf16, kPinned));
  EXPECT_EQ(pinned.peak_host_memory.at_peak.pinned, 10 * kParameters + 2 * largest_tensor());
  EXPECT_EQ(pinned.peak_host_memory.at_peak.pageable, 8 * kParameters);

  const Measured pageable = measured(offloaded(2, 1, DType::bf16, kPageable));
  EXPECT_EQ(pageable.peak_host_memory.at_peak.pinned, 0U);
  EXPECT_EQ(pageable.peak_host_memory.at_peak.pageable, 18 * kParameters + 2 * largest_tensor());
  EXPECT_EQ(pageable.peak_host_memory.held, 18 * kParameters + 2 * largest_tensor());
}

TEST(HostMemoryOfOffload, HasTheSumsOfMicroStepsInStageTwoAlone) {
  const Measured two = measured(offloaded(2, 3, DType::bf16, kPageable));
  EXPECT_EQ(two.peak_host_memory.held, 20 * kParameters + 2 * largest_tensor());

  const Measured one = measured(offloaded(1, 3, DType::bf16, kPageable));
  EXPECT_EQ(one.peak_host_memory.held, 18 * kParameters + 2 * largest_tensor());
}

// 910 and its multiples by the next power of two; the largest tensor's elements likewise.
TEST(HostMemoryOfOffload, IsPinnedInPowersOfTwo) {
  const Measured pinned = measured(offloaded(2, 1, DType::bf16, kPinned));

  const Bytes blocks = 4096 + 2048 + 4096 + PinnedModel::block_size(2 * largest_tensor());
  EXPECT_EQ(pinned.peak_host_memory.held, blocks + 8 * kParameters);
}

// The pageable originals of gradients and of the 16-bit staging are beside their pinned copies,
// which is more than Adagrad's state takes later. Lion's second state is there, although unused.
TEST(HostMemoryOfOffload, OfTheConstructorDecidesWhereTheStateIsSmall) {
  const auto peak = [](const char* root) {
    return measured(offloaded(2, 1, DType::bf16, kPinned, root)).peak_host_memory.at_peak;
  };
  const Bytes pinned = 10 * kParameters + 2 * largest_tensor();
  EXPECT_EQ(peak(R"({"optimizer": {"type": "Adagrad", "params": {"lr": 1e-4}}})"),
            (HostUse{pinned, 6 * kParameters}));
  EXPECT_EQ(peak(R"({"optimizer": {"type": "Lion", "params": {"lr": 1e-4}}})"),
            (HostUse{pinned, 8 * kParameters}));
}

TEST(HostMemoryOfOffload, LeavesNothingOfTheOptimizerOnTheDevice) {
  for (const int stage : {1, 2}) {
    const Measured own = measured(offloaded(stage, 1, DType::bf16, kPinned));
    EXPECT_EQ(own.peak_memory.categories.at(MemoryCategory::optimizer), 0U);
  }
}

TEST(HostMemoryOfOffload, IsWithinItsLimitOrSaysWhatIsMissing) {
  Experiment experiment = offloaded(2, 1, DType::bf16, kPageable);
  const Bytes needed = 18 * kParameters + 2 * largest_tensor();
  experiment.settings.host_memory_limit = needed;
  EXPECT_TRUE(std::holds_alternative<Measured>(dry_run(experiment, 0).outcome));

  experiment.settings.host_memory_limit = needed - 1;
  const auto fault = std::get<OutOfMemory>(dry_run(experiment, 0).outcome);
  EXPECT_EQ(fault.tier, Tier::pageable);
  EXPECT_EQ(fault.requested, 4 * kParameters);
  EXPECT_EQ(fault.limit, needed - 1);
  EXPECT_NE(describe(fault).find("out of the host's memory (pageable) on rank 0"),
            std::string::npos);
}

// On CPU ranks device and host are one memory: both count.
TEST(HostMemoryOfOffload, CountsWithinTheDevicesLimitWhereBothAreOne) {
  Experiment experiment = offloaded(2, 1, DType::bf16, kPageable);
  const Measured apart = measured(experiment);
  experiment.settings.host_memory_limit = 0;

  const Measured together = measured(experiment);

  EXPECT_GT(together.peak_memory.allocated, apart.peak_memory.allocated);
  EXPECT_GE(together.peak_memory.allocated, apart.peak_host_memory.held);
  EXPECT_LE(together.peak_memory.allocated,
            apart.peak_memory.allocated + apart.peak_host_memory.held);
}

TEST(CopiesOfOffload, AreThoseOfTheTable) {
  for (const int stage : {1, 2}) {
    for (const std::int64_t accumulation : {1, 3}) {
      SCOPED_TRACE(testing::Message()
                   << "stage " << stage << ", " << accumulation << " micro-steps");
      const Ledger ledger = measured(offloaded(stage, accumulation, DType::bf16, kPinned)).ledger;
      const bool sums_on_the_host = stage == 2 && accumulation > 1;
      const std::uint64_t sums = sums_on_the_host ? static_cast<std::uint64_t>(accumulation) : 0;
      const std::uint64_t tensors = tensor_count();
      using enum TransferPurpose;
      EXPECT_EQ(copies(ledger, gradient, Transfer::device_to_host),
                Copies(tensors, 4 * kParameters));
      EXPECT_EQ(copies(ledger, gradient_sum, Transfer::device_to_host),
                Copies(sums * tensors, sums * 2 * kParameters));
      const std::uint64_t returned = sums == 0 ? 0 : sums - 1;
      EXPECT_EQ(copies(ledger, gradient_sum, Transfer::host_to_device),
                Copies(returned * tensors, returned * 2 * kParameters));
      EXPECT_EQ(copies(ledger, update, Transfer::host_to_device), Copies(1, 2 * kParameters));
    }
  }
}

TEST(WaitsOfOffload, AreOneForTheFlagOfEachTensorAndOneForEachNorm) {
  const std::uint64_t tensors = tensor_count();
  const Ledger one = measured(offloaded(2, 1, DType::bf16, kPinned)).ledger;
  EXPECT_EQ(waits(one, HostSync::offload_overflow), tensors);
  EXPECT_EQ(waits(one, HostSync::offload_norm), tensors + 1);
  EXPECT_EQ(waits(one, HostSync::offload_copy), 1U);
  EXPECT_EQ(waits(one, HostSync::overflow), 1U);

  const Ledger three = measured(offloaded(2, 3, DType::bf16, kPinned)).ledger;
  EXPECT_EQ(waits(three, HostSync::offload_copy), 3 * tensors);
}

TEST(PassesOfOffload, AreFortyTwoBytesOfAParameterOnTheHost) {
  const auto host_bytes = [](const Ledger& ledger) {
    Bytes bytes = 0;
    for (const HostPassLine& line : ledger.host_passes()) bytes += line.read + line.written;
    return bytes;
  };
  EXPECT_EQ(host_bytes(measured(offloaded(2, 1, DType::bf16, kPinned)).ledger), 42 * kParameters);
  const char* unclipped = R"({"gradient_clipping": 0})";
  EXPECT_EQ(host_bytes(measured(offloaded(2, 1, DType::bf16, kPinned, unclipped)).ledger),
            34 * kParameters);
}

json::object in_precision(const Split& split, const char* precision, const char* zero_keys) {
  json::object config = config_of(split, zero_keys);
  if (precision != nullptr) config[precision] = {{"enabled", true}};
  if (precision != nullptr && std::string_view(precision) == "fp16") {
    config[precision].as_object()["loss_scale"] = 128;
  }
  return config;
}

// The epsilon keeps what is next to nothing in a gradient from becoming a whole step.
std::string optimizer_of(const char* type) {
  return concat(R"({"type": ")", type,
                R"(", "params": {"lr": 0.01, "eps": 1e-3, "weight_decay": 0.1}})");
}

// The same numbers are added in the same order: what differs is the rounding of a factor and of the
// sum of norms. In 16 bits it may tip the rounding of a parameter, which is 2^-8 of it in bf16 and
// 2^-11 in fp16, in each of the steps.
double tolerance_of(const char* precision, int steps) {
  if (precision == nullptr) return 1e-5;
  return steps * std::ldexp(1.0, std::string_view(precision) == "bf16" ? -8 : -11);
}

TEST(TrainingWithOffload, IsThatWithout) {
  constexpr int kSteps = 3;
  const std::pair<Split, const char*> cases[] = {
      {{1, 2, 3}, R"("overlap_comm": false)"},
      {{2, 2, 1}, R"("overlap_comm": true, "round_robin_gradients": true)"},
      {{2, 3, 3}, R"("overlap_comm": true, "reduce_bucket_size": 100)"}};
  for (const char* precision : {static_cast<const char*>(nullptr), "bf16", "fp16"}) {
    for (const auto& [split, keys] : cases) {
      for (const char* offload : {kPinned, kPageable}) {
        SCOPED_TRACE(testing::Message() << (precision == nullptr ? "fp32" : precision) << " stage "
                                        << split.stage << " " << keys << " " << offload);
        const auto run = [&, &of = split, &zero = keys](const std::string& more) {
          const std::string zero_keys = concat("{", zero, more, "}");
          StepConfig config = make_step_config(in_precision(of, precision, zero_keys.c_str()));
          config.optimizer.client = of.ranks == 3;  // two groups
          return run_training(config, of.ranks, kSteps);
        };
        const auto without = run("");
        const auto with = run(concat(R"(, "offload_optimizer": )", offload));
        EXPECT_LT(largest_difference(with, without), tolerance_of(precision, kSteps));
        EXPECT_LT(largest_difference(with.norms, without.norms), tolerance_of(precision, kSteps));
        EXPECT_LT(largest_difference(with.losses, without.losses), tolerance_of(precision, kSteps));
      }
    }
  }
}

TEST(TrainingWithOffload, IsThatWithoutForEachOptimizerOfTheCpu) {
  for (const char* type : {"Adagrad", "Adam"}) {
    json::object config = config_of({2, 2, 1});
    config["optimizer"] = parse_json(optimizer_of(type));
    const auto without = run_training(config, 2, 3);
    config["zero_optimization"].as_object()["offload_optimizer"] = parse_json(kPinned);
    const auto with = run_training(config, 2, 3);
    EXPECT_LT(largest_difference(with, without), 1e-5) << type;
  }
}

TEST(ConfigurationsOfOffload, ThatDeepSpeedOrTheStepDoesNotHaveAreSkippedByName) {
  const auto reason = [](int stage, const char* offload, const char* root = "{}") {
    const auto outcome = dry_run(offloaded(stage, 1, DType::bf16, offload, root), 0).outcome;
    const auto* const skipped = std::get_if<Skipped>(&outcome);
    return skipped == nullptr ? std::string("runs") : skipped->reason;
  };
  EXPECT_EQ(reason(2, R"({"device": "none", "ratio": 1.0})"), "runs");
  EXPECT_EQ(reason(0, kPinned), "not modelled: zero_optimization.offload_optimizer");
  EXPECT_EQ(
      reason(2, R"({"device": "cpu", "ratio": 0.5})"),
      "not modelled: zero_optimization.offload_optimizer.ratio below stage 3 (a DeepSpeed bug)");
  EXPECT_EQ(
      reason(1, R"({"device": "none", "ratio": 0.5})"),
      "not modelled: zero_optimization.offload_optimizer.ratio below stage 3 (a DeepSpeed bug)");
  EXPECT_EQ(
      reason(2, kPinned,
             R"({"optimizer": {"type": "Adagrad", "params": {"lr": 1e-4, "lr_decay": 0.1}}})"),
      "not modelled: optimizer.params.lr_decay with zero_optimization.offload_optimizer");
  const char* lamb = R"({"optimizer": {"type": "Lamb"}, "zero_allow_untested_optimizer": true})";
  EXPECT_EQ(reason(2, kPinned, lamb),
            "not modelled: zero_optimization.offload_optimizer with an optimizer that has no CPU "
            "kernel");
  const char* fp32_sums = R"({"data_types": {"grad_accum_dtype": "fp32"}})";
  EXPECT_EQ(reason(1, kPinned, fp32_sums), "runs");
  EXPECT_EQ(reason(2, R"({"device": "nvme", "nvme_path": "/tmp"})", fp32_sums), "runs");
  EXPECT_EQ(reason(1, R"({"device": "nvme", "nvme_path": "/tmp"})", fp32_sums),
            "not modelled: zero_optimization.offload_optimizer with data_types.grad_accum_dtype in "
            "bf16 and stage 1 and device nvme (a DeepSpeed bug)");
  EXPECT_EQ(reason(2, kPinned, R"({"data_types": {"grad_accum_dtype": "fp16"}})"),
            "not modelled: zero_optimization.offload_optimizer with data_types.grad_accum_dtype "
            "other than fp32");
  EXPECT_EQ(reason(1, kPinned, R"({"dstune": {"deepspeed_version": "0.18.9"}})"),
            "not modelled: zero_optimization.offload_optimizer before DeepSpeed 0.19.8");
}

}  // namespace
}  // namespace dstune::offloaded_engine_test
