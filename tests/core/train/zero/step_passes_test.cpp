// Memory traffic and waits of the optimizer step, against docs/deepspeed-step.md, "The update" and
// "Waits of the host".
#include <set>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/ledger_sums.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::step_passes_test {
namespace {

using test::TinyExperiment;
using test::waits;

constexpr Bytes kParameters = 910;  // of the tiny model: even, so that one rank pads nothing

const MemoryPass kPassesOfTheStep[] = {MemoryPass::overflow_check,  MemoryPass::norm,
                                       MemoryPass::master_gradient, MemoryPass::unscale,
                                       MemoryPass::update,          MemoryPass::master_cast};

/// The optimizer is DeepSpeed's Adam; `root` are further keys of the configuration.
Ledger ledger_of(int stage, int ranks, DType dtype, const char* root = "{}",
                 std::int64_t accumulation = 1) {
  TinyExperiment tiny{stage, ranks, 1, accumulation, dtype, false};
  tiny.root = parse_json(root).as_object();
  return std::get<Measured>(dry_run(tiny.make(), 0).outcome).ledger;
}

Bytes bytes_per_parameter(const Ledger& ledger) {
  const std::set<MemoryPass> counted(std::begin(kPassesOfTheStep), std::end(kPassesOfTheStep));
  Bytes bytes = 0;
  for (const PassLine& line : ledger.passes()) {
    if (counted.count(line.pass) > 0) bytes += line.read + line.written;
  }
  EXPECT_EQ(bytes % kParameters, 0U);
  return bytes / kParameters;
}

TEST(StepPasses, OfStageZeroHaveTheTablesTraffic) {
  EXPECT_EQ(bytes_per_parameter(ledger_of(0, 1, DType::fp32)), 40U);
  EXPECT_EQ(bytes_per_parameter(ledger_of(0, 1, DType::fp32, R"({"gradient_clipping": 0})")), 28U);
  EXPECT_EQ(bytes_per_parameter(ledger_of(0, 1, DType::fp16)), 64U);
  EXPECT_EQ(bytes_per_parameter(ledger_of(0, 1, DType::bf16)), 64U);
}

TEST(StepPasses, OfStagesOneAndTwoHaveTheTablesTraffic) {
  const char* unchecked = R"({"bf16": {"check_grad_overflow": false}})";
  for (const int stage : {1, 2}) {
    EXPECT_EQ(bytes_per_parameter(ledger_of(stage, 1, DType::fp16)), 74U);
    EXPECT_EQ(bytes_per_parameter(ledger_of(stage, 1, DType::bf16)), 74U);
    EXPECT_EQ(bytes_per_parameter(ledger_of(stage, 1, DType::bf16, unchecked)), 70U);
    EXPECT_EQ(bytes_per_parameter(ledger_of(stage, 1, DType::fp32)), 72U);
  }
}

TEST(StepPasses, OfStageThreeHaveTheTablesTraffic) {
  EXPECT_EQ(bytes_per_parameter(ledger_of(3, 1, DType::bf16)), 70U);
  EXPECT_EQ(bytes_per_parameter(ledger_of(3, 1, DType::fp16)), 78U);
  EXPECT_EQ(bytes_per_parameter(ledger_of(3, 1, DType::fp32)), 72U);
}

TEST(StepWaits, ForTheOverflowFlagAreOnePerTensorWithoutZeroAndOneWithIt) {
  const std::uint64_t tensors = make_model_parameters(test::tiny_model()).tensors.size();

  EXPECT_EQ(waits(ledger_of(0, 2, DType::bf16), HostSync::overflow), tensors);
  EXPECT_EQ(waits(ledger_of(0, 2, DType::fp32), HostSync::overflow), 0U);
  for (const int stage : {1, 2, 3}) {
    EXPECT_EQ(waits(ledger_of(stage, 2, DType::fp16), HostSync::overflow), 1U);
    EXPECT_EQ(waits(ledger_of(stage, 2, DType::fp32), HostSync::overflow), 0U);
  }
}

// DeepSpeed's sharded engines keep their norms on the device.
TEST(StepWaits, ForTheNormAreOfTheOptimizersWithoutZeroOnly) {
  const char* unfused = R"({"optimizer": {"type": "SGD", "params": {"lr": 0.1}}})";
  EXPECT_EQ(waits(ledger_of(0, 2, DType::bf16), HostSync::norm), 1U);
  EXPECT_EQ(waits(ledger_of(0, 2, DType::bf16, unfused), HostSync::norm), 1U) << "one a group";
  EXPECT_EQ(waits(ledger_of(0, 2, DType::fp32, unfused), HostSync::norm), 0U);
  for (const int stage : {1, 2, 3}) {
    EXPECT_EQ(waits(ledger_of(stage, 2, DType::bf16), HostSync::norm), 0U);
  }
}

// 16 modules with parameters run forward and backward, and lm_head's tensor is still there since
// wte ran: 32 gathers, as many handles. One rank has nobody to wait for, and DeepSpeed waits for
// the device instead, at each; several wait for theirs by events.
TEST(StepWaits, OfOneRankInStage3AreOnePerGather) {
  const char* kNothingStays = R"({"zero_optimization": {"stage3_param_persistence_threshold": 0,
      "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0}})";

  EXPECT_EQ(waits(ledger_of(3, 1, DType::fp32, kNothingStays), HostSync::parameters), 32U);
  EXPECT_EQ(waits(ledger_of(3, 2, DType::fp32, kNothingStays), HostSync::parameters), 0U);
}

// By default every tensor of the tiny model stays, and all are gathered again after the update.
TEST(StepWaits, AfterThePersistentGathersAreOne) {
  EXPECT_EQ(waits(ledger_of(3, 2, DType::fp32), HostSync::parameters), 1U);
  EXPECT_EQ(waits(ledger_of(3, 1, DType::fp32), HostSync::parameters), 1U);
}

TEST(StepWaits, OfTheThroughputTimerAreTwoPerMicroStepUnlessItIsOff) {
  constexpr std::int64_t kAccumulation = 3;
  const char* off[] = {R"({"timers": {"throughput": {"enabled": false}}})",
                       R"({"timers": {"throughput": {"synchronized": false}}})"};
  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(waits(ledger_of(stage, 2, DType::bf16, "{}", kAccumulation), HostSync::timer),
              2U * kAccumulation);
    for (const char* timers : off) {
      const Ledger without = ledger_of(stage, 2, DType::bf16, timers, kAccumulation);

      EXPECT_EQ(waits(without, HostSync::timer), 0U) << timers;
    }
  }
}

}  // namespace
}  // namespace dstune::step_passes_test
