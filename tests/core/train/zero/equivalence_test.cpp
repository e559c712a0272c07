// The oracle of ZeRO: however states are sharded and the batch is split, the same model is trained.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/training_run.hpp"

namespace dstune {
namespace {

using test::largest_difference;
using test::run_training;
using test::TrainingRun;

constexpr int kSteps = 4;
constexpr std::int64_t kBatch = 36;  // sequences per optimizer step: every split below divides it
constexpr double kClipping = 0.3;
constexpr double kExact = 1e-5;  // of fp32

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

// Buckets hold 300 elements: of tensors with 12 to 576 elements several share a bucket, and the
// matrices are larger than one. Sub-groups of stage 3 hold a few tensors each.
//
// epsilon 1e-3: with 1e-8 Adam's first update is lr * sign(g), so that rounding noise in a gradient
// whose true value is zero (the key bias of attention) would move a parameter by the full lr. With
// gradients around 0.3 / sqrt(4248) = 5e-3, 1e-3 damps noise and still leaves the second moment
// to decide.
json::object config_of(const Split& split, std::string_view zero_keys = "{}") {
  json::object config = parse_json(R"({
    "gradient_clipping": 0.3,
    "optimizer": {"type": "AdamW",
                  "params": {"lr": 0.01, "betas": [0.9, 0.95], "eps": 1e-3, "weight_decay": 0.1}},
    "zero_optimization": {"reduce_bucket_size": 300, "sub_group_size": 500}
  })")
                            .as_object();
  config["train_batch_size"] = kBatch;
  config["train_micro_batch_size_per_gpu"] = kBatch / (split.ranks * split.accumulation);
  config["gradient_accumulation_steps"] = split.accumulation;
  json::object& zero = config["zero_optimization"].as_object();
  zero["stage"] = split.stage;
  const json::value others = parse_json(zero_keys);
  for (const auto& [key, value] : others.as_object()) zero[key] = value;
  return config;
}

StepConfig with_two_groups(const json::object& config) {
  StepConfig step = make_step_config(config);
  step.optimizer.client = true;
  return step;
}

json::object config_in(const Split& split, std::string_view precision, const json::object& keys) {
  json::object config = config_of(split);
  json::object& section = config[precision].emplace_object();
  section = keys;
  section["enabled"] = true;
  return config;
}

// References: one rank without ZeRO. No split changes them, so each is computed once.
const TrainingRun& one_rank_without_zero() {
  static const TrainingRun run = run_training(config_of({}), 1, kSteps);
  return run;
}

const TrainingRun& one_rank_with_two_groups() {
  static const TrainingRun run = run_training(with_two_groups(config_of({})), 1, kSteps);
  return run;
}

const TrainingRun& one_rank_in_bf16() {
  static const TrainingRun run = run_training(config_in({}, "bf16", {}), 1, kSteps);
  return run;
}

const TrainingRun& one_rank_in_fp16() {
  static const TrainingRun run =
      run_training(config_in({}, "fp16", {{"loss_scale", 128}}), 1, kSteps);
  return run;
}

/// An "optimizer" section whose norms are those of tensors, not of what a rank owns.
struct OtherOptimizer {
  const char* section;
  double tolerance;
};

// Adagrad's first update is lr * sign(g), as Adam's would be with a small epsilon.
constexpr OtherOptimizer kOtherOptimizers[] = {
    {R"({"type": "SGD", "params": {"lr": 0.1, "weight_decay": 0.1}})", kExact},
    {R"({"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "nesterov": true}})", kExact},
    {R"({"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9, "dampening": 0.5,
                                   "weight_decay": 0.1}})",
     kExact},
    {R"({"type": "Adagrad", "params": {"lr": 0.01, "lr_decay": 0.5, "eps": 1e-3,
                                       "weight_decay": 0.1}})",
     kExact},
};

json::object with_optimizer(const Split& split, const char* section) {
  json::object config = config_of(split);
  config["optimizer"] = parse_json(section);
  config["zero_allow_untested_optimizer"] = true;
  return config;
}

const TrainingRun& one_rank_with(std::size_t other) {
  static const std::vector<TrainingRun> runs = [] {
    std::vector<TrainingRun> all;
    for (const OtherOptimizer& optimizer : kOtherOptimizers) {
      all.push_back(run_training(with_optimizer({}, optimizer.section), 1, kSteps));
    }
    return all;
  }();
  return runs[other];
}

constexpr const char* kLion =
    R"({"type": "Lion", "params": {"lr": 0.003, "betas": [0.9, 0.95], "weight_decay": 0.1}})";

const TrainingRun& one_rank_with_lion() {
  static const TrainingRun run = run_training(with_optimizer({}, kLion), 1, kSteps);
  return run;
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

// Stage 0 reads none of these knobs. One rank has nobody to communicate with, and four take no
// other path than three: two and three ranks get all combinations.
std::vector<const char*> knobs_of(const Split& split) {
  std::vector<const char*> knobs = {
      R"({"round_robin_gradients": true, "overlap_comm": true, "reduce_bucket_size": 5000})"};
  if (split.stage == 0) return knobs;
  knobs.insert(knobs.end(), {R"({"overlap_comm": true, "reduce_scatter": false})",
                             R"({"reduce_bucket_size": 1, "sub_group_size": 1})"});
  if (split.ranks == 1 || split.ranks == 4) return knobs;
  const bool overlaps_by_default = split.stage == 3;
  knobs.insert(knobs.end(),
               {overlaps_by_default ? R"({"overlap_comm": false})" : R"({"overlap_comm": true})",
                R"({"reduce_scatter": false})", R"({"round_robin_gradients": true})",
                R"({"reduce_bucket_size": 1, "reduce_scatter": false})",
                R"({"reduce_bucket_size": 5000, "sub_group_size": 5000})"});
  return knobs;
}

void expect_equal(const TrainingRun& actual, const TrainingRun& expected, double tolerance) {
  EXPECT_LT(largest_difference(actual.losses, expected.losses), tolerance);
  EXPECT_LT(largest_difference(actual.norms, expected.norms), tolerance);
  EXPECT_LT(largest_difference(actual, expected), tolerance);
}

class EquivalenceTest : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, EquivalenceTest, testing::ValuesIn(all_splits()), name_of);

TEST(EquivalenceReference, LearnsAndIsClippedInEveryStep) {
  const TrainingRun start = run_training(config_of({}), 1, 0);

  const TrainingRun run = one_rank_without_zero();

  for (const double norm : run.norms) EXPECT_GT(norm, kClipping);
  EXPECT_GT(largest_difference(run, start), 0.1);
}

TEST(EquivalenceReference, DecayMakesADifference) {
  json::object config = config_of({});
  config["optimizer"].as_object()["params"].as_object()["weight_decay"] = 0;

  const TrainingRun without = run_training(config, 1, kSteps);

  EXPECT_GT(largest_difference(without, one_rank_without_zero()), 10 * kExact);
}

TEST_P(EquivalenceTest, TrainsAsOneRankWithOneParameterGroup) {
  const TrainingRun run = run_training(config_of(GetParam()), GetParam().ranks, kSteps);

  expect_equal(run, one_rank_without_zero(), kExact);
}

TEST_P(EquivalenceTest, TrainsAsOneRankWithTwoParameterGroups) {
  const TrainingRun run =
      run_training(with_two_groups(config_of(GetParam())), GetParam().ranks, kSteps);

  expect_equal(run, one_rank_with_two_groups(), kExact);
  EXPECT_GT(largest_difference(run, one_rank_without_zero()), 10 * kExact);
}

// One rank of bf16 rounds each gradient once per accumulation; so does every further rank. A
// rounding is 2^-9 = 0.2 % of a gradient; at most 12 of them meet, at random, in a gradient, and
// the division of Adam by epsilon + sqrt(v) may double them: up to 5 % of what 3 updates of at most
// 0.01 move. Where a bias starts at zero, that movement is its whole magnitude.
TEST_P(EquivalenceTest, TrainsAsOneRankInBf16) {
  const TrainingRun& expected = one_rank_in_bf16();

  const TrainingRun run = run_training(config_in(GetParam(), "bf16", {}), GetParam().ranks, kSteps);

  EXPECT_LT(largest_difference(run.losses, expected.losses), 2e-3);
  EXPECT_LT(largest_difference(run.norms, expected.norms), 1e-2);
  EXPECT_LT(largest_difference(run, expected), 5e-2);
}

// As with bf16, with 3 more bits: a static scale, or a dynamic one that never changes, in turn.
TEST_P(EquivalenceTest, TrainsAsOneRankInFp16) {
  const TrainingRun& expected = one_rank_in_fp16();
  const bool is_static = (GetParam().stage + GetParam().ranks) % 2 == 0;
  const json::object scale = {
      {is_static ? "loss_scale" : "initial_scale_power", is_static ? 128 : 8}};

  const TrainingRun run =
      run_training(config_in(GetParam(), "fp16", scale), GetParam().ranks, kSteps);

  EXPECT_LT(largest_difference(run.losses, expected.losses), 3e-4);
  EXPECT_LT(largest_difference(run.norms, expected.norms), 2e-3);
  EXPECT_LT(largest_difference(run, expected), 1e-2);
}

TEST_P(EquivalenceTest, TrainsTheSameWithEveryKnobThatOnlyChangesCommunication) {
  for (const char* zero_keys : knobs_of(GetParam())) {
    SCOPED_TRACE(zero_keys);
    const TrainingRun run =
        run_training(config_of(GetParam(), zero_keys), GetParam().ranks, kSteps);
    expect_equal(run, one_rank_without_zero(), kExact);
  }
}

TEST_P(EquivalenceTest, TrainsAsOneRankWithOtherOptimizers) {
  for (std::size_t other = 0; other < std::size(kOtherOptimizers); ++other) {
    SCOPED_TRACE(kOtherOptimizers[other].section);
    const TrainingRun run = run_training(
        with_optimizer(GetParam(), kOtherOptimizers[other].section), GetParam().ranks, kSteps);
    expect_equal(run, one_rank_with(other), kOtherOptimizers[other].tolerance);
  }
}

// Lion takes the sign of its direction, so an element whose direction is rounding noise may go the
// other way. The 24 key biases of attention are such: they have no influence on the loss. Beyond
// them a few of 4,248 elements may be near zero by chance. No other element changes at all.
TEST_P(EquivalenceTest, TrainsAsOneRankWithLion) {
  const TrainingRun& expected = one_rank_with_lion();

  const TrainingRun run = run_training(with_optimizer(GetParam(), kLion), GetParam().ranks, kSteps);

  EXPECT_LT(largest_difference(run.losses, expected.losses), 1e-3);
  EXPECT_LT(largest_difference(run.norms, expected.norms), 1e-3);
  EXPECT_LE(elements_apart(run, expected), 24 + 6);
}

// Under ZeRO Lamb's norms are those of a rank's partition, so that the number of ranks and the
// stage change the result, in DeepSpeed too. Without ZeRO they are the tensors' own.
TEST(EquivalenceOfLamb, HoldsWithoutZeroAndEndsWithPartitions) {
  constexpr const char* kLamb = R"({"type": "Lamb", "params": {"lr": 0.01, "eps": 1e-3}})";
  const TrainingRun one = run_training(with_optimizer({}, kLamb), 1, kSteps);

  const TrainingRun three = run_training(with_optimizer({0, 3, 1}, kLamb), 3, kSteps);
  const TrainingRun sharded = run_training(with_optimizer({2, 3, 1}, kLamb), 3, kSteps);

  expect_equal(three, one, kExact);
  EXPECT_GT(largest_difference(sharded, one), 10 * kExact);
}

// In fp16 Lamb takes the 16-bit gradients themselves: see UnfusedEngine.
TEST(EquivalenceOfLamb, HoldsInFp16WithoutZero) {
  constexpr const char* kLamb = R"({"type": "Lamb", "params": {"lr": 0.01, "eps": 1e-3}})";
  const TrainingRun single = run_training(with_optimizer({}, kLamb), 1, kSteps);
  json::object config = with_optimizer({0, 2, 1}, kLamb);
  config["fp16"] = {{"enabled", true}, {"initial_scale_power", 7}};

  const TrainingRun half = run_training(config, 2, kSteps);

  EXPECT_LT(largest_difference(half.losses, single.losses), 2e-3);
  EXPECT_LT(largest_difference(half.norms, single.norms), 1e-2);
  EXPECT_LT(largest_difference(half, single), 5e-2);
}

}  // namespace
}  // namespace dstune
