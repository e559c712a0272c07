// What the knobs of the gradients' average do to a step in stages 0 to 2: collectives, passes,
// waits.
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/zero/reduction/gradient_sum.hpp"
#include "tests/support/communication_simulation.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::gradient_knobs_test {
namespace {

using test::TinyExperiment;

constexpr Bytes kParameters = 910;  // of the tiny model

Measured measure(const TinyExperiment& tiny, int rank = 0) {
  return std::get<Measured>(dry_run(tiny.make(), rank).outcome);
}

json::object parsed(const std::string& text) { return parse_json(text).as_object(); }

/// `zero` and `root` are keys of zero_optimization and of the whole.
TinyExperiment experiment(int stage, DType dtype, const char* zero, const char* root = "{}") {
  TinyExperiment tiny{stage, 3, 1, 2, dtype, false, parsed(zero)};
  tiny.root = parsed(root);
  return tiny;
}

/// All zeros if there was no such pass.
PassLine pass_of(const Measured& measured, MemoryPass pass) {
  for (const PassLine& line : measured.ledger.passes()) {
    if (line.pass == pass) return line;
  }
  return {pass};
}

Bytes traffic(const Measured& measured, MemoryPass pass) {
  const PassLine line = pass_of(measured, pass);
  return line.read + line.written;
}

std::uint64_t waits(const Measured& measured, HostSync reason) {
  for (const SyncLine& line : measured.ledger.syncs()) {
    if (line.reason == reason) return line.calls;
  }
  return 0;
}

const CollectiveLine& gradients_of(const Measured& measured) {
  const auto& lines = measured.ledger.collectives();
  return *std::find_if(lines.begin(), lines.end(), [](const CollectiveLine& line) {
    return line.purpose == Purpose::gradients;
  });
}

const char* const kZeroKnobs[] = {
    R"({"contiguous_gradients": false})",
    R"({"contiguous_gradients": false, "overlap_comm": true, "reduce_scatter": false})",
    R"({"use_multi_rank_bucket_allreduce": false})",
    R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true})",
    R"({"use_multi_rank_bucket_allreduce": false, "round_robin_gradients": true})",
    R"({"use_multi_rank_bucket_allreduce": false, "reduce_scatter": false})",
    R"({"round_robin_gradients": true})",
    R"({"reduce_scatter": false, "overlap_comm": true})"};

const char* const kRootKnobs[] = {
    R"({"communication_data_type": "fp32"})",
    R"({"communication_data_type": "bf16"})",
    R"({"data_types": {"grad_accum_dtype": "fp32"}})",
    R"({"data_types": {"grad_accum_dtype": "fp32"}, "communication_data_type": "fp32"})",
    R"({"bf16": {"check_grad_overflow": false}})",
    R"({"gradient_allreduce_op": "sum"})"};

class GradientKnobs : public testing::TestWithParam<int> {};

/// Everything that the step models: not stage 0 with another accumulation type, for example.
bool is_modelled(const TinyExperiment& tiny) {
  return tiny.make().ds_config.step().unsupported.empty();
}

TEST_P(GradientKnobs, CommunicateAsTheSimulation) {
  int checked = 0;
  for (const char* zero : kZeroKnobs) {
    for (const char* root : kRootKnobs) {
      for (const std::int64_t bucket : {500'000'000, 200, 40, 5}) {
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
          for (const int ranks : {1, 2, 3, 4}) {
            TinyExperiment tiny{GetParam(),       ranks,       1, 1 + checked % 2, dtype,
                                checked % 3 == 0, parsed(zero)};
            tiny.zero["reduce_bucket_size"] = bucket;
            tiny.root = parsed(root);
            if (!is_modelled(tiny)) continue;

            const CollectiveCounts counts = measure(tiny, checked % ranks).ledger.counts();

            ASSERT_EQ(counts, test::CommunicationSimulation(tiny).counts()) << tiny.name();
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GE(checked, 200);
  std::cout << checked << " experiments checked\n";
}

INSTANTIATE_TEST_SUITE_P(Stages, GradientKnobs, testing::Values(0, 1, 2));

TEST(CommunicationDataType, DoublesTheBytesAndCastsThereAndBack) {
  for (const int stage : {0, 1, 2}) {
    const Bytes windows = stage == 2 ? 2 : 1;
    const Measured plain = measure(experiment(stage, DType::bf16, "{}"));

    const Measured cast =
        measure(experiment(stage, DType::bf16, "{}", R"({"communication_data_type": "fp32"})"));

    EXPECT_EQ(gradients_of(cast).dtype, DType::fp32);
    EXPECT_EQ(gradients_of(cast).bytes, 2 * gradients_of(plain).bytes) << "stage " << stage;
    EXPECT_EQ(traffic(plain, MemoryPass::message_cast), 0U);
    EXPECT_EQ(traffic(cast, MemoryPass::message_cast), windows * 2 * (2 + 4) * kParameters);
  }
}

TEST(ContiguousGradients, OffCopiesAListInsteadOfABucket) {
  const Measured list = measure(experiment(2, DType::bf16, R"({"contiguous_gradients": false})"));

  constexpr Bytes kCopy = Bytes{2} * (2 + 2) * kParameters;  // two micro-steps, read and write
  EXPECT_EQ(traffic(list, MemoryPass::bucket_copy), 0U);
  EXPECT_EQ(traffic(list, MemoryPass::partition_copy), 0U);
  EXPECT_EQ(traffic(list, MemoryPass::flatten), 2 * kCopy);  // there and back, on every rank
  EXPECT_EQ(traffic(list, MemoryPass::average), kCopy);
  EXPECT_EQ(list.peak_memory.categories.at(MemoryCategory::buckets), 0U);
}

TEST(ContiguousGradients, OffWaitsForTheDeviceBeforeEveryOverlappingReduction) {
  const char* zero =
      R"({"contiguous_gradients": false, "overlap_comm": true, "reduce_bucket_size": 200})";

  const Measured list = measure(experiment(2, DType::bf16, zero));

  EXPECT_EQ(waits(list, HostSync::reduction), gradients_of(list).calls + 2);  // ends of backward
}

TEST(MultiRankBuckets, OffReduceToEveryOwnerAndWaitBeforeEachIfTheyOverlap) {
  const char* zero =
      R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true,
          "reduce_bucket_size": 200})";

  const Measured reduced = measure(experiment(2, DType::bf16, zero));

  EXPECT_EQ(gradients_of(reduced).kind, CollectiveKind::reduce);
  EXPECT_EQ(gradients_of(reduced).elements, 2 * kParameters);
  EXPECT_EQ(waits(reduced, HostSync::reduction), gradients_of(reduced).calls + 2);
}

using Factors = std::pair<std::optional<double>, std::optional<double>>;

Factors factors(const char* root, int ranks) {
  const GradientScaling scaling = configured_scaling(make_step_config(parsed(root)), ranks);
  return {scaling.before, scaling.after};
}

TEST(ConfiguredScaling, IsTheHeadersTable) {
  EXPECT_EQ(factors("{}", 4), Factors(std::nullopt, 0.25));
  EXPECT_EQ(factors("{}", 1), Factors(std::nullopt, std::nullopt));
  EXPECT_EQ(factors(R"({"gradient_predivide_factor": 2})", 4), Factors(0.5, 0.5));
  EXPECT_EQ(factors(R"({"gradient_predivide_factor": 4})", 4), Factors(0.25, std::nullopt));
  EXPECT_EQ(factors(R"({"prescale_gradients": true})", 4), Factors(0.25, std::nullopt));
  EXPECT_EQ(factors(R"({"prescale_gradients": true})", 1), Factors(1, std::nullopt));
  EXPECT_EQ(factors(R"({"gradient_allreduce_op": "sum"})", 4), Factors());
  EXPECT_EQ(factors(R"({"gradient_allreduce_op": "sum", "gradient_predivide_factor": 2})", 4),
            Factors());
}

// With P elements: once over all of them for each factor, in the type of communication.
TEST(Scaling, IsAPassPerFactor) {
  const auto passes = [](int stage, const char* zero, const char* root) {
    TinyExperiment tiny = experiment(stage, DType::bf16, zero, root);
    tiny.accumulation_steps = 1;
    return traffic(measure(tiny), MemoryPass::average) / (Bytes{2 + 2} * kParameters);
  };
  const char* sum = R"({"gradient_allreduce_op": "sum"})";
  const char* prescale = R"({"prescale_gradients": true})";
  const char* predivide = R"({"gradient_predivide_factor": 2})";
  const char* in_fp32 = R"({"gradient_predivide_factor": 2, "communication_data_type": "fp32"})";
  const char* whole = R"({"reduce_scatter": false})";

  for (const int stage : {0, 1, 2}) {
    SCOPED_TRACE(stage);
    EXPECT_EQ(passes(stage, whole, "{}"), 1U);
    EXPECT_EQ(passes(stage, whole, sum), 0U);
    EXPECT_EQ(passes(stage, whole, prescale), 1U);
    EXPECT_EQ(passes(stage, whole, predivide), 2U);
    EXPECT_EQ(passes(stage, whole, in_fp32), 4U);
    EXPECT_EQ(passes(stage, R"({"contiguous_gradients": false})", sum), 0U);
  }
  EXPECT_EQ(passes(1, "{}", sum), 0U);
  EXPECT_EQ(passes(1, "{}", predivide), 1U);  // slices are divided first, whatever those keys say
  EXPECT_EQ(passes(1, "{}", prescale), 1U);
}

TEST(CheckGradOverflow, IsOnByDefaultAndOnlyBf16CanSwitchItOff) {
  const auto checks = [](int stage, DType dtype, const char* root) {
    return pass_of(measure(experiment(stage, dtype, "{}", root)), MemoryPass::overflow_check)
               .calls > 0;
  };
  const char* off = R"({"bf16": {"check_grad_overflow": false}})";

  for (const int stage : {1, 2}) {
    EXPECT_TRUE(checks(stage, DType::bf16, "{}"));
    EXPECT_FALSE(checks(stage, DType::bf16, off));
    EXPECT_TRUE(checks(stage, DType::fp16, "{}"));
    EXPECT_TRUE(checks(stage, DType::fp16, off));
    EXPECT_FALSE(checks(stage, DType::fp32, "{}"));
  }
}

// Clipping is on unless it is switched off, and costs no pass of its own; of 0.19.8, which leaves
// one out without it, see docs/deepspeed-step.md, "The update".
TEST(GradientClipping, ChangesNoWorkInStages1And2) {
  for (const int stage : {1, 2}) {
    const Measured clipped = measure(experiment(stage, DType::bf16, "{}"));

    const Measured free =
        measure(experiment(stage, DType::bf16, "{}", R"({"gradient_clipping": 0.0})"));

    EXPECT_TRUE(free.ledger.same_work(clipped.ledger));
  }
}

// With p elements of the partition: each of two micro-steps casts what is owned, and adds it; no
// gradient is copied out of the bucket, flattened or cast for the update.
TEST(SumsInThePartition, AreAddedToAsAveragesComeAndUpdatedByInPlace) {
  const Measured step =
      measure(experiment(2, DType::bf16, "{}", R"({"data_types": {"grad_accum_dtype": "fp32"}})"));

  constexpr Bytes p = 304;  // of the first of three ranks
  EXPECT_EQ(traffic(step, MemoryPass::accumulate), (2 * (2 + 4 + 3 * 4) + 4) * p);
  EXPECT_EQ(traffic(step, MemoryPass::partition_copy), 0U);
  EXPECT_EQ(traffic(step, MemoryPass::master_gradient), 0U);
  EXPECT_EQ(traffic(step, MemoryPass::unscale), (4 + 4) * p);
  EXPECT_EQ(step.peak_memory.categories.at(MemoryCategory::optimizer), 12 * p);
}

TEST(SumsInThePartition, AreNotThereBefore0198) {
  const auto of_release = [](const char* root) {
    return measure(experiment(2, DType::bf16, "{}", root));
  };
  const Measured plain = of_release(R"({"dstune": {"deepspeed_version": "0.19.7"}})");
  const Measured asked = of_release(R"({"dstune": {"deepspeed_version": "0.19.7"},
                                        "data_types": {"grad_accum_dtype": "fp32"}})");
  EXPECT_TRUE(asked.ledger.same_work(plain.ledger));
  EXPECT_EQ(asked.peak_memory, plain.peak_memory);
}

// docs/decisions/bf16-optimizer.md: bytes per optimizer step, with P elements, two micro-steps and
// three ranks.
TEST(Bf16Optimizer, ReadsAndWritesAllFp32GradientsOnEveryRank) {
  constexpr Bytes kPadded = 912;  // a multiple of 2 N
  TinyExperiment tiny =
      experiment(1, DType::bf16, "{}", R"({"data_types": {"grad_accum_dtype": "fp32"}})");

  const Measured step = measure(tiny);

  EXPECT_EQ(gradients_of(step).calls, 1U);
  EXPECT_EQ(gradients_of(step).dtype, DType::bf16);
  EXPECT_EQ(gradients_of(step).elements, kPadded);
  EXPECT_EQ(traffic(step, MemoryPass::flatten), 0U);  // one group is a view
  EXPECT_EQ(traffic(step, MemoryPass::message_cast), 2 * (4 + 2) * kPadded);
  // In both micro-steps a fp32 copy and its addition; in the second also that to .grad.
  EXPECT_EQ(traffic(step, MemoryPass::accumulate), (2 * (2 + 4 + 3 * 4) + 3 * 2) * kParameters);
  EXPECT_EQ(traffic(step, MemoryPass::norm), 4 * kParameters);
  EXPECT_EQ(traffic(step, MemoryPass::unscale), (4 + 4) * kParameters);
  EXPECT_EQ(traffic(step, MemoryPass::zero_gradients), 2 * kParameters + 2 * 4 * kPadded);
  EXPECT_EQ(traffic(step, MemoryPass::overflow_check), 0U);
}

TEST(Bf16Optimizer, FlattensSmallGroupsIntoOneCall) {
  TinyExperiment tiny =
      experiment(1, DType::bf16, "{}", R"({"data_types": {"grad_accum_dtype": "fp32"}})");
  tiny.client = true;

  const Measured step = measure(tiny);

  EXPECT_EQ(gradients_of(step).calls, 1U);
  EXPECT_EQ(traffic(step, MemoryPass::flatten), 2 * (4 + 4) * gradients_of(step).elements);
}

}  // namespace
}  // namespace dstune::gradient_knobs_test
