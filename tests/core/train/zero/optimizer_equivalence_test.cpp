// However states are sharded, every optimizer trains the same model (Lamb under ZeRO excepted).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::optimizer_equivalence_test {
namespace {

using test::largest_difference;
using test::run_training;
using test::TrainingRun;

constexpr int kSteps = 4;
constexpr std::int64_t kBatch = 36;  // sequences per optimizer step: every split below divides it
constexpr double kExact = 1e-5;      // of fp32

struct Split {
  int stage = 0;
  int ranks = 1;
  std::int64_t accumulation = 1;
};

std::vector<Split> all_splits() {
  std::vector<Split> splits;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const std::int64_t accumulation : {1, 3}) splits.push_back({stage, ranks, accumulation});
    }
  }
  return splits;
}

std::string name_of(const testing::TestParamInfo<Split>& split) {
  return "Stage" + std::to_string(split.param.stage) + "Ranks" + std::to_string(split.param.ranks) +
         "Accumulation" + std::to_string(split.param.accumulation);
}

// Buckets and sub-groups of a few tensors each.
json::object config_of(const Split& split, const char* optimizer) {
  return {{"gradient_clipping", 0.3},
          {"optimizer", parse_json(optimizer)},
          {"zero_allow_untested_optimizer", true},
          {"zero_optimization",
           {{"stage", split.stage}, {"reduce_bucket_size", 300}, {"sub_group_size", 500}}},
          {"train_batch_size", kBatch},
          {"train_micro_batch_size_per_gpu", kBatch / (split.ranks * split.accumulation)},
          {"gradient_accumulation_steps", split.accumulation}};
}

TrainingRun train(const Split& split, const char* optimizer) {
  return run_training(config_of(split, optimizer), split.ranks, kSteps);
}

// Adagrad's first update is lr * sign(g) but for epsilon, which damps what is rounding noise.
constexpr const char* kSmooth[] = {
    R"({"type": "SGD", "params": {"lr": 0.1, "weight_decay": 0.1}})",
    R"({"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "nesterov": true}})",
    R"({"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "dampening": 0.5,
                                  "weight_decay": 0.1}})",
    R"({"type": "Adagrad", "params": {"lr": 0.01, "lr_decay": 0.5, "eps": 1e-3,
                                      "weight_decay": 0.1}})",
};
constexpr const char* kLion =
    R"({"type": "Lion", "params": {"lr": 0.003, "betas": [0.9, 0.95], "weight_decay": 0.1}})";
constexpr const char* kLamb = R"({"type": "Lamb", "params": {"lr": 0.01, "eps": 1e-3}})";

// References: one rank without ZeRO. No split changes them, so each is computed once.
const TrainingRun& one_rank_with(std::size_t smooth) {
  static const std::vector<TrainingRun> runs = [] {
    std::vector<TrainingRun> all;
    for (const char* optimizer : kSmooth) all.push_back(train({}, optimizer));
    return all;
  }();
  return runs[smooth];
}

const TrainingRun& one_rank_with_lion() {
  static const TrainingRun run = train({}, kLion);
  return run;
}

void expect_equal(const TrainingRun& actual, const TrainingRun& expected, double tolerance) {
  EXPECT_LT(largest_difference(actual.losses, expected.losses), tolerance);
  EXPECT_LT(largest_difference(actual.norms, expected.norms), tolerance);
  EXPECT_LT(largest_difference(actual, expected), tolerance);
}

/// Elements that differ by more than kExact.
std::int64_t elements_apart(const TrainingRun& actual, const TrainingRun& expected) {
  std::int64_t count = 0;
  for (std::size_t tensor = 0; tensor < expected.parameters.size(); ++tensor) {
    for (std::size_t i = 0; i < expected.parameters[tensor].size(); ++i) {
      const float difference = actual.parameters[tensor][i] - expected.parameters[tensor][i];
      count += std::abs(difference) <= static_cast<float>(kExact) ? 0 : 1;
    }
  }
  return count;
}

class OptimizerEquivalence : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, OptimizerEquivalence, testing::ValuesIn(all_splits()), name_of);

TEST_P(OptimizerEquivalence, TrainsAsOneRank) {
  for (std::size_t i = 0; i < std::size(kSmooth); ++i) {
    SCOPED_TRACE(kSmooth[i]);
    expect_equal(train(GetParam(), kSmooth[i]), one_rank_with(i), kExact);
  }
}

// Lion takes the sign of its direction, so an element whose direction is rounding noise may go the
// other way. The 24 key biases of attention are such: they have no influence on the loss. Beyond
// them a few of 4,248 elements may be near zero by chance. No other element changes at all.
TEST_P(OptimizerEquivalence, TrainsAsOneRankWithLion) {
  const TrainingRun& expected = one_rank_with_lion();

  const TrainingRun run = train(GetParam(), kLion);

  EXPECT_LT(largest_difference(run.losses, expected.losses), 1e-3);
  EXPECT_LT(largest_difference(run.norms, expected.norms), 1e-3);
  EXPECT_LE(elements_apart(run, expected), 24 + 6);
}

// Under ZeRO Lamb's norms are those of a rank's partition, so that the number of ranks and the
// stage change the result, in DeepSpeed too. Without ZeRO they are the tensors' own.
TEST(OptimizerEquivalenceOfLamb, HoldsOnRanks3WithoutZeroAndEndsWithPartitions) {
  const TrainingRun one = train({}, kLamb);

  const TrainingRun three = train({0, 3, 1}, kLamb);
  const TrainingRun sharded = train({2, 3, 1}, kLamb);

  expect_equal(three, one, kExact);
  EXPECT_GT(largest_difference(sharded, one), 10 * kExact);
}

// In fp16 Lamb takes the 16-bit gradients themselves: see UnfusedEngine. A rounding is 2^-11 of a
// gradient.
TEST(OptimizerEquivalenceOfLamb, HoldsInFp16OnRanks2WithoutZero) {
  const TrainingRun single = train({}, kLamb);
  json::object config = config_of({0, 2, 1}, kLamb);
  config["fp16"] = {{"enabled", true}, {"initial_scale_power", 7}};

  const TrainingRun half = run_training(config, 2, kSteps);

  EXPECT_LT(largest_difference(half.losses, single.losses), 2e-3);
  EXPECT_LT(largest_difference(half.norms, single.norms), 1e-2);
  EXPECT_LT(largest_difference(half, single), 5e-2);
}

}  // namespace
}  // namespace dstune::optimizer_equivalence_test
