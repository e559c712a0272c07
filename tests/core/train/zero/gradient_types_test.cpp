// The same model is trained whatever gradients are scaled by, travel in and are added up in.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::gradient_types_test {
namespace {

using test::largest_difference;
using test::run_training;
using test::TrainingRun;

constexpr int kSteps = 3;
constexpr double kExact = 1e-5;  // of fp32

struct Split {
  int stage = 0;
  int ranks = 1;
  std::int64_t accumulation = 1;
};

std::vector<Split> all_splits() {
  std::vector<Split> splits;
  for (const int stage : {0, 1, 2}) {
    for (const int ranks : {1, 2, 3}) {
      for (const std::int64_t accumulation : {1, 3}) splits.push_back({stage, ranks, accumulation});
    }
  }
  return splits;
}

std::string name_of(const testing::TestParamInfo<Split>& split) {
  return "Stage" + std::to_string(split.param.stage) + "Ranks" + std::to_string(split.param.ranks) +
         "Accumulation" + std::to_string(split.param.accumulation);
}

// As in the equivalence test: buckets that hold some tensors, and an epsilon that damps noise.
json::object config_of(const Split& split, const char* root_keys = "{}",
                       const char* zero_keys = "{}") {
  json::object config = parse_json(R"({
    "gradient_clipping": 0.3, "train_batch_size": 18,
    "optimizer": {"type": "AdamW",
                  "params": {"lr": 0.01, "betas": [0.9, 0.95], "eps": 1e-3, "weight_decay": 0.1}},
    "zero_optimization": {"reduce_bucket_size": 300}
  })")
                            .as_object();
  config["train_micro_batch_size_per_gpu"] = 18 / (split.ranks * split.accumulation);
  config["gradient_accumulation_steps"] = split.accumulation;
  const json::value root = parse_json(root_keys);
  for (const auto& [key, value] : root.as_object()) config[key] = value;
  json::object& zero = config["zero_optimization"].as_object();
  zero["stage"] = split.stage;
  const json::value others = parse_json(zero_keys);
  for (const auto& [key, value] : others.as_object()) zero[key] = value;
  return config;
}

// References: one rank without ZeRO.
const TrainingRun& reference() {
  static const TrainingRun run = run_training(config_of({}), 1, kSteps);
  return run;
}

constexpr const char* kBf16 = R"({"bf16": {"enabled": true}})";
constexpr const char* kFp16 = R"({"fp16": {"enabled": true, "loss_scale": 128}})";

const TrainingRun& reference_in_fp16() {
  static const TrainingRun run = run_training(config_of({}, kFp16), 1, kSteps);
  return run;
}

void expect_equal(const TrainingRun& actual, const TrainingRun& expected, double of_norms,
                  double tolerance) {
  EXPECT_LT(largest_difference(actual.norms, expected.norms), of_norms);
  EXPECT_LT(largest_difference(actual, expected), tolerance);
}

class GradientTypes : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, GradientTypes, testing::ValuesIn(all_splits()), name_of);

TEST_P(GradientTypes, ScalingBeforeOrAfterTheSumIsTheSame) {
  const char* const roots[] = {R"({"prescale_gradients": true})",
                               R"({"gradient_predivide_factor": 2})",
                               R"({"gradient_predivide_factor": 3.0, "prescale_gradients": true})"};
  for (const char* root : roots) {
    SCOPED_TRACE(root);
    const TrainingRun run = run_training(
        config_of(GetParam(), root, R"({"reduce_scatter": false})"), GetParam().ranks, kSteps);
    expect_equal(run, reference(), kExact, kExact);
  }
}

// N times the gradient has N times the norm, and clipping makes it the same update again.
TEST_P(GradientTypes, ASumIsAsManyTimesTheMeanAsThereAreRanks) {
  const char* const zeros[] = {R"({})", R"({"reduce_scatter": false})",
                               R"({"contiguous_gradients": false})",
                               R"({"use_multi_rank_bucket_allreduce": false})"};
  for (const char* zero : zeros) {
    SCOPED_TRACE(zero);
    TrainingRun run =
        run_training(config_of(GetParam(), R"({"gradient_allreduce_op": "sum"})", zero),
                     GetParam().ranks, kSteps);
    for (double& norm : run.norms) norm /= GetParam().ranks;
    expect_equal(run, reference(), kExact, 2 * kExact);
  }
}

// Beside the same split in bf16, where every addition rounds: to 2^-9 = 0.2 % of a gradient, which
// the division of Adam by epsilon + sqrt(v) may double. Where a bias starts at zero, its movement
// is its whole magnitude.
TEST_P(GradientTypes, Bf16GradientsMayTravelInFp32) {
  const char* root = R"({"bf16": {"enabled": true}, "communication_data_type": "fp32"})";
  const char* const zeros[] = {R"({})", R"({"reduce_scatter": false})",
                               R"({"contiguous_gradients": false})",
                               R"({"use_multi_rank_bucket_allreduce": false})"};
  for (const char* zero : zeros) {
    SCOPED_TRACE(zero);
    const TrainingRun expected =
        run_training(config_of(GetParam(), kBf16, zero), GetParam().ranks, kSteps);
    const TrainingRun run =
        run_training(config_of(GetParam(), root, zero), GetParam().ranks, kSteps);
    expect_equal(run, expected, 1e-2, 5e-2);
  }
}

// One rounding to 2^-12 per gradient and rank, before the sum, and one after it.
TEST_P(GradientTypes, Fp32GradientsMayTravelInFp16) {
  const TrainingRun run = run_training(
      config_of(GetParam(), R"({"communication_data_type": "fp16"})"), GetParam().ranks, kSteps);

  expect_equal(run, reference(), 2e-3, 1e-2);
}

class AccumulationTypes : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, AccumulationTypes,
                         testing::Values(Split{1, 1, 1}, Split{1, 1, 3}, Split{1, 2, 1},
                                         Split{1, 2, 3}, Split{1, 3, 1}, Split{1, 3, 3},
                                         Split{2, 1, 3}, Split{2, 2, 1}, Split{2, 3, 3}),
                         name_of);

constexpr const char* kFp32Sums = R"({"fp16": {"enabled": true, "loss_scale": 128},
                                      "data_types": {"grad_accum_dtype": "fp32"}})";

TEST_P(AccumulationTypes, OfTheirOwnTrainTheSame) {
  for (const char* zero : {R"({})", R"({"overlap_comm": true})", R"({"reduce_bucket_size": 1})",
                           R"({"contiguous_gradients": false})",
                           R"({"contiguous_gradients": false, "overlap_comm": true})",
                           R"({"reduce_scatter": false, "overlap_comm": true})",
                           R"({"use_multi_rank_bucket_allreduce": false})",
                           R"({"round_robin_gradients": true, "reduce_bucket_size": 5000})",
                           R"({"offload_optimizer": {"device": "cpu"}})",
                           R"({"offload_optimizer": {"device": "cpu", "pin_memory": false},
                               "overlap_comm": true, "reduce_bucket_size": 1})"}) {
    SCOPED_TRACE(zero);
    const TrainingRun run =
        run_training(config_of(GetParam(), kFp32Sums, zero), GetParam().ranks, kSteps);
    expect_equal(run, reference_in_fp16(), 2e-3, 1e-2);
  }
}

// Before 0.19.8 only a copy of the sums got into the bucket.
TEST_P(AccumulationTypes, OfEarlierReleasesTrainTheSame) {
  const char* root = R"({"fp16": {"enabled": true, "loss_scale": 128},
                         "data_types": {"grad_accum_dtype": "fp32"},
                         "dstune": {"deepspeed_version": "0.19.7"}})";
  for (const char* zero : {R"({})", R"({"overlap_comm": true})"}) {
    SCOPED_TRACE(zero);
    const TrainingRun run =
        run_training(config_of(GetParam(), root, zero), GetParam().ranks, kSteps);
    expect_equal(run, reference_in_fp16(), 2e-3, 1e-2);
  }
}

// Averages are added in fp32: it does not matter whether two gradients meet on one rank or on two.
TEST(SumsInThePartition, AddMicroStepsUpAsRanksWithoutRounding) {
  const char* root = R"({"bf16": {"enabled": true}, "communication_data_type": "fp32",
                         "data_types": {"grad_accum_dtype": "fp32"}})";
  for (const char* zero : {R"({})", R"({"offload_optimizer": {"device": "cpu"}})"}) {
    const TrainingRun ranks = run_training(config_of({2, 2, 1}, root, zero), 2, 1);
    const TrainingRun micro_steps = run_training(config_of({2, 1, 2}, root, zero), 1, 1);

    EXPECT_LT(largest_difference(micro_steps.norms, ranks.norms), 1e-6);
  }
}

class Bf16OptimizerTraining : public testing::TestWithParam<Split> {};

INSTANTIATE_TEST_SUITE_P(Splits, Bf16OptimizerTraining,
                         testing::Values(Split{1, 1, 1}, Split{1, 1, 3}, Split{1, 2, 1},
                                         Split{1, 2, 3}, Split{1, 3, 1}, Split{1, 3, 3}),
                         name_of);

// Beside ZeRO-1 in bf16, as above.
TEST_P(Bf16OptimizerTraining, TrainsAsStage1InBf16) {
  const char* const roots[] = {
      R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}})",
      R"({"bf16": {"enabled": true, "immediate_grad_update": true},
          "data_types": {"grad_accum_dtype": "fp32"}, "communication_data_type": "fp32"})"};
  for (const char* root : roots) {
    SCOPED_TRACE(root);
    for (const bool client : {false, true}) {
      StepConfig config = make_step_config(config_of(GetParam(), root));
      config.optimizer.client = client;
      StepConfig plain = make_step_config(config_of(GetParam(), kBf16));
      plain.optimizer.client = client;
      const TrainingRun expected = run_training(plain, GetParam().ranks, kSteps);

      const TrainingRun run = run_training(config, GetParam().ranks, kSteps);

      expect_equal(run, expected, 1e-2, 5e-2);
    }
  }
}

// fp32 all the way: it does not matter whether two gradients meet on one rank or on two.
TEST(Bf16Optimizer, AddsMicroStepsUpAsRanks2WithoutRounding) {
  const char* root = R"({"bf16": {"enabled": true}, "communication_data_type": "fp32",
                         "data_types": {"grad_accum_dtype": "fp32"}})";

  const TrainingRun two_ranks = run_training(config_of({1, 2, 1}, root), 2, 1);
  const TrainingRun two_micro_steps = run_training(config_of({1, 1, 2}, root), 1, 1);

  EXPECT_LT(largest_difference(two_micro_steps.norms, two_ranks.norms), 1e-6);
}

}  // namespace
}  // namespace dstune::gradient_types_test
