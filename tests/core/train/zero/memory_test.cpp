// The formulas and walks of memory_model.hpp beside what a dry run of a step allocates.
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/predicted_memory.hpp"
#include "tests/support/set_in.hpp"

namespace dstune::memory_test {
namespace {

using test::TinyExperiment;

/// Every rank of the experiment, dry.
int check_dry(const TinyExperiment& tiny) {
  const Experiment experiment = tiny.make();
  for (int rank = 0; rank < tiny.ranks; ++rank) {
    const auto outcome = dry_run(experiment, rank).outcome;
    test::expect_equal(std::get<Measured>(outcome).peak_memory.categories,
                       test::predict_peak(experiment, rank, nullptr),
                       concat(tiny.name(), ", rank ", rank));
  }
  return tiny.ranks;
}

std::vector<TinyExperiment> all_combinations() {
  std::vector<TinyExperiment> all;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 3, 4, 8}) {
      for (const int accumulation : {1, 2, 3}) {
        for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
          for (const bool client : {false, true}) {
            all.push_back({stage, ranks, 1, accumulation, dtype, client, {}});
          }
        }
      }
    }
  }
  return all;
}

std::vector<TinyExperiment> with(const json::object& zero) {
  auto all = all_combinations();
  for (TinyExperiment& tiny : all) tiny.zero = zero;
  return all;
}

class ModelStates : public testing::TestWithParam<const char*> {};

// Buckets from larger than the model to smaller than any tensor, sub-groups, and the knobs that
// change what lives when.
TEST_P(ModelStates, PeaksOfADryRunAreTheFormulas) {
  const json::object zero = json::parse(GetParam()).as_object();
  int checked = 0;

  for (const TinyExperiment& tiny : with(zero)) checked += check_dry(tiny);

  std::cout << checked << " ranks of " << all_combinations().size() << " experiments checked\n";
}

INSTANTIATE_TEST_SUITE_P(
    Zero, ModelStates,
    testing::Values(R"({"reduce_bucket_size": 500000000})", R"({"reduce_bucket_size": 150})",
                    R"({"reduce_bucket_size": 40, "overlap_comm": true})",
                    R"({"reduce_bucket_size": 100, "overlap_comm": false})",
                    R"({"reduce_bucket_size": 5, "overlap_comm": true})",
                    R"({"reduce_bucket_size": 70, "reduce_scatter": false})",
                    R"({"reduce_bucket_size": 120, "sub_group_size": 30})",
                    R"({"reduce_bucket_size": 130, "round_robin_gradients": true})"));

class ShardedStates : public testing::TestWithParam<json::object> {};

TEST_P(ShardedStates, PeaksOfADryRunAreTheWalks) {
  int checked = 0;

  for (const TinyExperiment& tiny : with(GetParam())) {
    if (tiny.stage == 3 && shard_sizes_divide(tiny)) checked += check_dry(tiny);
  }

  std::cout << checked << " ranks checked\n";
}

INSTANTIATE_TEST_SUITE_P(Zero, ShardedStates, testing::ValuesIn(test::stage3_knobs()));

TEST(ShardedStatesOfOtherTypes, PeaksOfADryRunAreTheWalks) {
  for (const json::object& zero : test::stage3_knobs()) {
    for (const char* communication : {"fp32", "bf16"}) {
      for (const char* accumulation : {"fp32", "bf16"}) {
        const TinyExperiment tiny{3, 4, 1, 2, DType::bf16, true, zero};
        Experiment experiment = tiny.make();
        experiment.ds_config.set("communication_data_type", communication);
        experiment.ds_config.set("data_types", {{"grad_accum_dtype", accumulation}});

        const auto outcome = dry_run(experiment, 1).outcome;

        test::expect_equal(std::get<Measured>(outcome).peak_memory.categories,
                           test::predict_peak(experiment, 1, nullptr),
                           concat(tiny.name(), communication));
      }
    }
  }
}

class OtherOptimizers : public testing::TestWithParam<const char*> {};

// DeepSpeed has no Lamb for bf16 without ZeRO.
TEST_P(OtherOptimizers, PeaksOfADryRunAreTheFormulas) {
  int checked = 0;

  for (TinyExperiment& tiny : with({{"reduce_bucket_size", 150}, {"sub_group_size", 100}})) {
    tiny.optimizer = json::parse(GetParam()).as_object();
    const bool is_lamb = tiny.optimizer["type"] == "Lamb";
    if (is_lamb && tiny.stage == 0 && tiny.dtype == DType::bf16) continue;
    if (tiny.accumulation_steps == 1 && tiny.client) checked += check_dry(tiny);
  }

  EXPECT_GT(checked, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Zero, OtherOptimizers,
    testing::Values(R"({"type": "AdamW", "params": {"torch_adam": true}})", R"({"type": "SGD"})",
                    R"({"type": "SGD", "params": {"weight_decay": 0.1}})",
                    R"({"type": "SGD", "params": {"momentum": 0.9, "weight_decay": 0.1}})",
                    R"({"type": "Lion"})", R"({"type": "Adagrad"})", R"({"type": "Lamb"})"));

// Of stages 0 to 2: where gradients wait, how they are averaged, and in which types they travel and
// are added up.
TEST(ModelStatesWithGradientKnobs, PeaksOfADryRunAreTheFormulas) {
  const char* const zeros[] = {
      R"({"contiguous_gradients": false})",
      R"({"contiguous_gradients": false, "overlap_comm": true})",
      R"({"use_multi_rank_bucket_allreduce": false, "round_robin_gradients": true})",
      R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true})",
      R"({"reduce_scatter": false})",
      R"({"overlap_comm": true})"};
  const char* const roots[] = {
      R"({"communication_data_type": "fp32"})",
      R"({"communication_data_type": "fp16", "data_types": {"grad_accum_dtype": "fp32"}})",
      R"({"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"check_grad_overflow": false}})",
      R"({"data_types": {"grad_accum_dtype": "bf16"}})"};
  int checked = 0;

  for (const char* zero : zeros) {
    for (const char* root : roots) {
      for (const std::int64_t bucket : {500'000'000, 200, 40, 5}) {
        for (TinyExperiment& tiny : with(json::parse(zero).as_object())) {
          if (tiny.stage == 3 || tiny.ranks > 3 || tiny.client != (tiny.ranks == 2)) continue;
          tiny.zero["reduce_bucket_size"] = bucket;
          tiny.root = json::parse(root).as_object();
          if (!tiny.make().ds_config.step().unsupported.empty()) continue;
          checked += check_dry(tiny);
        }
      }
    }
  }

  EXPECT_GT(checked, 200);
  std::cout << checked << " ranks checked\n";
}

// A vocabulary of one makes the blocks' tensors the largest, a long position table wpe.
TEST(ModelStatesOfOtherShapes, PeaksOfADryRunAreTheFormulas) {
  int checked = 0;

  for (TinyExperiment& tiny : with({{"reduce_bucket_size", 90}})) {
    tiny.model.vocab_size = 5;
    tiny.model.inner_size = 50;
    checked += check_dry(tiny);
    tiny.model.max_positions = 200;
    tiny.model.num_layers = 1;
    checked += check_dry(tiny);
  }

  EXPECT_GT(checked, 0);
}

TEST(ModelStatesOfOtherSettings, UncheckedBf16NeedsNoOverflowTemporaries) {
  TinyExperiment tiny{2, 2, 1, 1, DType::bf16, true, {{"reduce_bucket_size", 5}}};
  Experiment experiment = tiny.make();
  testing_support::set_in(experiment.ds_config, "bf16", "check_grad_overflow", false);

  const auto outcome = dry_run(experiment, 0).outcome;

  test::expect_equal(std::get<Measured>(outcome).peak_memory.categories,
                     test::predict_peak(experiment, 0, nullptr), "bf16 without check");
}

}  // namespace
}  // namespace dstune::memory_test
