// The oracle of ZeRO: however states are sharded and the batch is split, the same model is trained.
#include <cstdint>
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

// Stage 0 reads none of these knobs. One rank has nobody to communicate with, and four take no
// other path than three: two and three ranks get all combinations.
std::vector<const char*> knobs_of(const Split& split) {
  std::vector<const char*> knobs = {
      R"({"round_robin_gradients": true, "overlap_comm": true, "reduce_bucket_size": 5000})"};
  if (split.stage == 0) return knobs;
  knobs.insert(knobs.end(), {R"({"overlap_comm": true, "reduce_scatter": false})",
                             R"({"reduce_bucket_size": 1, "sub_group_size": 1})"});
  if (split.ranks == 1 || split.ranks == 4) return knobs;
  if (split.stage < 3) {
    knobs.insert(knobs.end(),
                 {R"({"contiguous_gradients": false})",
                  R"({"contiguous_gradients": false, "overlap_comm": true})",
                  R"({"use_multi_rank_bucket_allreduce": false, "round_robin_gradients": true})",
                  R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true})"});
  }
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

}  // namespace
}  // namespace dstune
