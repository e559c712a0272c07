// Keys that change nothing: the same work, the same peaks.
#include <variant>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::no_op_knobs_test {
namespace {

using test::TinyExperiment;

/// `zero` and `root` are keys of zero_optimization and of the whole.
Measured measure(int stage, const char* zero, const char* root, int rank) {
  TinyExperiment tiny{stage, 3, 1, 2, DType::bf16, false, parse_json(zero).as_object()};
  tiny.root = parse_json(root).as_object();
  return std::get<Measured>(dry_run(tiny.make(), rank).outcome);
}

struct NoOp {
  int stage;
  const char* zero;
  const char* root = "{}";
  const char* base = "{}";  ///< keys of zero_optimization beside which it is one
};

const NoOp kNoOps[] = {
    {1, R"({"allgather_partitions": false})"},
    {2, R"({"allgather_partitions": false})"},
    {3, R"({"allgather_partitions": false})"},
    {1, R"({"allgather_bucket_size": 10})"},
    {2, R"({"allgather_bucket_size": 10})"},
    {3, R"({"allgather_bucket_size": 10})"},
    {2, R"({"sub_group_size": 10, "stage3_max_live_parameters": 0})"},
    {3, R"({"sub_group_size": 5000, "round_robin_gradients": true})"},
    {3, R"({"use_multi_rank_bucket_allreduce": false})",
     R"({"bf16": {"check_grad_overflow": false}})"},
    {3, R"({"zero_hpz_partition_size": 1, "mics_shard_size": -1})"},
    {2, R"({"reduce_scatter": false, "use_multi_rank_bucket_allreduce": false})", "{}",
     R"({"reduce_scatter": false})"},
    {1, R"({"zero_hpz_partition_size": 3, "mics_shard_size": 3, "enable_sanity_checks": true})"},
    {2, R"({"zero_quantized_weights": true, "zero_quantized_gradients": true})"},
    {2, R"({"stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0,
         "stage3_max_reuse_distance": 0, "memory_efficient_linear": false})"},
    {0, R"({"stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0,
         "stage3_max_reuse_distance": 0, "stage3_max_live_parameters": 0})"},
    {0, R"({"zero_hpz_partition_size": 3, "mics_shard_size": 3, "zero_quantized_weights": true,
         "zero_quantized_gradients": true, "leaf_module": {"classes": ["GPT2Block"]}})"},
    {0, R"({"contiguous_gradients": false, "reduce_scatter": false})"},
    {0, R"({"overlap_comm": true, "reduce_bucket_size": 10, "round_robin_gradients": true})"},
    {0, R"({"use_multi_rank_bucket_allreduce": false, "allgather_partitions": false})"},
    {0, R"({"offload_param": {"device": "cpu"}, "sub_group_size": 10})"},
    {2, R"({"offload_param": {"device": "cpu"}})"},
    {0, "{}", R"({"bf16": {"check_grad_overflow": false}})"},
};

class NoOpKnob : public testing::TestWithParam<NoOp> {};

TEST_P(NoOpKnob, LeavesLedgerAndPeaksAsTheyAre) {
  const NoOp& knob = GetParam();
  for (int rank = 0; rank < 3; ++rank) {
    const Measured without = measure(knob.stage, knob.base, "{}", rank);

    const Measured with = measure(knob.stage, knob.zero, knob.root, rank);

    EXPECT_TRUE(with.ledger.same_work(without.ledger));
    EXPECT_EQ(with.peak_memory, without.peak_memory);
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, NoOpKnob, testing::ValuesIn(kNoOps));

}  // namespace
}  // namespace dstune::no_op_knobs_test
