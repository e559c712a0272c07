// The oracle of ZeRO: however states are sharded and the batch is split, the same model is trained.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::equivalence_test {
namespace {

using test::all_splits;
using test::config_of;
using test::knobs_of;
using test::largest_difference;
using test::run_reference;
using test::run_training;
using test::sharded_splits;
using test::Split;
using test::stage_3_knobs;
using test::TrainingRun;

constexpr int kSteps = 4;
constexpr double kClipping = 0.3;
constexpr double kExact = 1e-5;  // of fp32

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

// References: one rank without ZeRO, on the CPU. No split changes them, so each is computed once.
const TrainingRun& one_rank_without_zero() {
  static const TrainingRun run = run_reference(config_of({}), kSteps);
  return run;
}

const TrainingRun& one_rank_with_two_groups() {
  static const TrainingRun run = run_reference(with_two_groups(config_of({})), kSteps);
  return run;
}

const TrainingRun& one_rank_in_bf16() {
  static const TrainingRun run = run_reference(config_in({}, "bf16", {}), kSteps);
  return run;
}

const TrainingRun& one_rank_in_fp16() {
  static const TrainingRun run =
      run_reference(config_in({}, "fp16", {{"loss_scale", 128}}), kSteps);
  return run;
}

void expect_equal(const TrainingRun& actual, const TrainingRun& expected, double tolerance) {
  EXPECT_LT(largest_difference(actual.losses, expected.losses), tolerance);
  EXPECT_LT(largest_difference(actual.norms, expected.norms), tolerance);
  EXPECT_LT(largest_difference(actual, expected), tolerance);
}

class EquivalenceTest : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, EquivalenceTest, testing::ValuesIn(all_splits()),
                         test::name_of_split);

TEST(EquivalenceReference, LearnsAndIsClippedInEveryStep) {
  const TrainingRun start = run_reference(config_of({}), 0);

  const TrainingRun run = one_rank_without_zero();

  for (const double norm : run.norms) EXPECT_GT(norm, kClipping);
  EXPECT_GT(largest_difference(run, start), 0.1);
}

TEST(EquivalenceReference, DecayMakesADifference) {
  json::object config = config_of({});
  config["optimizer"].as_object()["params"].as_object()["weight_decay"] = 0;

  const TrainingRun without = run_reference(config, kSteps);

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

TEST_P(EquivalenceTest, TrainsTheSameWithTheLossOfEveryTrainer) {
  constexpr LossKind kKinds[] = {LossKind::chunked, LossKind::tiled, LossKind::fused};
  RunSettings settings = test::tiny_settings();
  settings.loss.kind = kKinds[(GetParam().stage + GetParam().ranks) % 3];

  const TrainingRun run =
      run_training(make_step_config(config_of(GetParam())), GetParam().ranks, kSteps, settings);

  expect_equal(run, one_rank_without_zero(), kExact);
}

class ShardedEquivalenceTest : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, ShardedEquivalenceTest, testing::ValuesIn(sharded_splits()),
                         test::name_of_split);

TEST_P(ShardedEquivalenceTest, TrainsTheSameHoweverParametersAreGathered) {
  for (const char* zero_keys : stage_3_knobs()) {
    SCOPED_TRACE(zero_keys);
    const TrainingRun run =
        run_training(config_of(GetParam(), zero_keys), GetParam().ranks, kSteps);
    expect_equal(run, one_rank_without_zero(), kExact);
  }
}

TEST_P(ShardedEquivalenceTest, TrainsTheSameInPartsOfTheGroup) {
  const int ranks = GetParam().ranks;
  for (const int part : {1, 2, 3, 4}) {
    if (ranks % part != 0) continue;
    for (const char* key : {"zero_hpz_partition_size", "mics_shard_size"}) {
      for (const char* others :
           {R"({"stage3_param_persistence_threshold": 12})",
            R"({"stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 700,
                "stage3_max_live_parameters": 1500, "stage3_max_reuse_distance": 0,
                "reduce_scatter": false})"}) {
        SCOPED_TRACE(std::string(key) + " " + std::to_string(part) + others);
        json::object config = config_of(GetParam(), others);
        config["zero_optimization"].as_object()[key] = part;
        expect_equal(run_training(config, ranks, kSteps), one_rank_without_zero(), kExact);
      }
    }
  }
}

// fp32 sums of bf16 gradients are more exact than the reference's.
TEST_P(ShardedEquivalenceTest, TrainsAsOneRankInBf16WithOtherTypesOfSumAndMessage) {
  for (const char* type : {"fp32", "bf16", "fp16"}) {
    json::object config = config_in(GetParam(), "bf16", {});
    config["communication_data_type"] = type;
    config["data_types"] = {{"grad_accum_dtype", "fp32"}};

    const TrainingRun run = run_training(config, GetParam().ranks, kSteps);

    EXPECT_LT(largest_difference(run.losses, one_rank_in_bf16().losses), 2e-3) << type;
    EXPECT_LT(largest_difference(run, one_rank_in_bf16()), 5e-2) << type;
  }
}

}  // namespace
}  // namespace dstune::equivalence_test
