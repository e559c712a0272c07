#include "core/search/space/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::pool_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TemporaryDirectory;

constexpr const char* kTiny =
    R"("model": {"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 2, "vocab_size": 40,
                 "n_positions": 16})";

TuningConfig read(const std::string& keys, const std::string& dstune = "") {
  const TemporaryDirectory directory;
  CommandLine options;
  options.config_path = directory / "config.json";
  testing_support::write_file(options.config_path,
                              concat("{", keys, keys.empty() ? "" : ",", R"("dstune": {)", kTiny,
                                     dstune.empty() ? "" : ", ", dstune, "}}"));
  TuningConfig config = read_tuning_config(options);
  config.settings.backend = "sim";
  return config;
}

Pool pool_of(const TuningConfig& config, int ranks = 2) {
  const DryRunner dry_run = make_dry_runner();
  return make_pool(config, ranks, plan_stages(config, ranks), dry_run);
}

std::vector<std::string> names(const Pool& pool) {
  std::vector<std::string> all;
  for (const PooledCandidate& candidate : pool.candidates) {
    all.push_back(candidate.candidate.name);
  }
  return all;
}

// All fates of the first space, in order.
std::vector<std::string> fates(const Pool& pool) {
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i < pool.spaces[0].space.size(); ++i) {
    const Fate fate = pool.fate(0, i);
    all.push_back(concat(name_of(fate.kind), fate.reason.empty() ? "" : ": ", fate.reason));
  }
  return all;
}

TEST(MakePool, KeepsOneOfThoseWithTheSameEffect) {
  const Pool pool = pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "zero_optimization":
      {"stage": 1, "allgather_bucket_size": [10, 20, 30], "overlap_comm": [true, false]})"));

  EXPECT_THAT(names(pool), ElementsAre("z1_tmbspg1_abs10_ocT_gas1", "z1_tmbspg1_abs10_ocF_gas1"));
  EXPECT_THAT(pool.candidates[0].other_names,
              ElementsAre("z1_tmbspg1_abs20_ocT_gas1", "z1_tmbspg1_abs30_ocT_gas1"));
  EXPECT_EQ(pool.candidates[0].same_effect, 2U);
  EXPECT_THAT(fates(pool),
              ElementsAre("to be tried", "to be tried", "same effect: z1_tmbspg1_abs10_ocT_gas1",
                          "same effect: z1_tmbspg1_abs10_ocF_gas1",
                          "same effect: z1_tmbspg1_abs10_ocT_gas1",
                          "same effect: z1_tmbspg1_abs10_ocF_gas1"));
  const StageFunnel& funnel = pool.funnel.at(0);
  EXPECT_EQ(funnel.generated, 6U);
  EXPECT_EQ(funnel.valid(), 6U);
  EXPECT_EQ(funnel.distinct(), 2U);
  EXPECT_EQ(funnel.left(), 2U);
}

// Which buckets come to be is a matter of the tensors' sizes: no form knows that 300 and 301 are
// the same, but the walk does. Their memory differs where the bucket is a buffer of its own.
TEST(MakePool, FindsEqualStepsUnderDifferentForms) {
  const Pool equal = pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "zero_optimization":
      {"stage": 2, "contiguous_gradients": false, "reduce_bucket_size": [600, 601]})"));
  const Pool different = pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "zero_optimization":
      {"stage": 2, "reduce_bucket_size": [600, 601]})"));

  EXPECT_EQ(equal.candidates.size(), 1U);
  EXPECT_EQ(different.candidates.size(), 2U);
}

// With one sub-group nothing is left on the device, whatever the ratio is.
TEST(MakePool, SearchesHowMuchOfTheOptimizerIsOffloaded) {
  const Pool pool = pool_of(read(R"("train_micro_batch_size_per_gpu": [1],
      "optimizer": {"type": "AdamW"},
      "zero_optimization": {"stage": 3, "sub_group_size": [300, 1000000],
                            "offload_optimizer": {"device": "cpu", "ratio": [0.5, 1.0]}})",
                                 R"("host_memory_limit": "1GiB")"));

  EXPECT_THAT(names(pool), ElementsAre("z3_tmbspg1_oo_dcpu_r0.5_sgs300_gas1",
                                       "z3_tmbspg1_oo_dcpu_r1.0_sgs300_gas1",
                                       "z3_tmbspg1_oo_dcpu_r0.5_sgs1.0e+06_gas1"));
}

TEST(MakePool, HasParametersOnTheDeviceAndOnTheHost) {
  const Pool stage_3 = pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "zero_optimization":
      {"stage": 3, "offload_param": {"device": ["none", "cpu"], "pin_memory": true}})"));
  const Pool stage_2 = pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "zero_optimization":
      {"stage": 2, "offload_param": {"device": ["none", "cpu"], "pin_memory": true}})"));

  ASSERT_EQ(stage_3.candidates.size(), 2U);
  EXPECT_THAT(names(stage_3), ElementsAre(HasSubstr("op_dnone_"), HasSubstr("op_dcpu_")));
  EXPECT_EQ(stage_3.candidates[0].dry.peak_host_memory, PeakHostMemory());
  EXPECT_GT(stage_3.candidates[1].dry.peak_host_memory.at_peak.pinned, 0U);
  EXPECT_EQ(stage_2.candidates.size(), 1U);
}

TEST(MakePool, CountsInvalidOnesByTheirRule) {
  const Pool pool =
      pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "prescale_gradients": [true, false],
              "zero_optimization": {"stage": 2, "reduce_scatter": [true, false],
                                    "offload_optimizer": {"device": ["none", "cpu"], "super_offload": true}})"));

  const StageFunnel& funnel = pool.funnel.at(0);
  EXPECT_EQ(funnel.generated, 8U);
  EXPECT_EQ(funnel.invalid.at("zero_optimization.offload_optimizer.super_offload is not modelled"),
            4U);
  EXPECT_EQ(funnel.invalid.at("DeepSpeed refuses prescale_gradients in stages 2 and 3 with "
                              "reduce_scatter"),
            1U);
  EXPECT_EQ(funnel.valid(), 3U);
}

TEST(MakePool, RefusesWhatDeepSpeedRefuses) {
  const Pool pool =
      pool_of(read(R"("train_micro_batch_size_per_gpu": [1], "bf16": {"enabled": [true, false]},
      "fp16": {"enabled": [false, true]}, "optimizer": {"type": ["AdamW", "SGD"], "params": {"eps": 1e-8}},
      "zero_optimization": {"stage": 0})"));

  EXPECT_THAT(
      pool.funnel.at(0).invalid,
      ElementsAre(testing::Pair(HasSubstr("/bf16/enabled is true and so is /fp16/enabled"), 2),
                  testing::Pair("/optimizer/params/eps is not a parameter of SGD", 3)));
}

TEST(MakePool, KeepsWhatFitsToTheByte) {
  TuningConfig config = read(R"("train_micro_batch_size_per_gpu": [1, 2], "zero_optimization":
      {"stage": 2, "reduce_bucket_size": [5000, 50000]})");
  const Pool all = pool_of(config);
  ASSERT_EQ(all.candidates.size(), 4U);
  const Bytes smallest = all.candidates[0].dry.peak_memory.allocated;

  config.settings.memory_limit = smallest;
  const Pool exact = pool_of(config);
  config.settings.memory_limit = smallest - 1;
  const Pool none = pool_of(config);

  EXPECT_THAT(names(exact), ElementsAre("z2_tmbspg1_rbs5000_gas2"));
  EXPECT_TRUE(none.candidates.empty());
  EXPECT_EQ(none.funnel.at(0).does_not_fit, 4U);
  EXPECT_THAT(fates(none)[0], HasSubstr(concat("does not fit: needs ", format_bytes(smallest))));
}

TEST(MakePool, HasTheMicroBatchesThatFitTheLeanestWhereTheFilesSettingsFitNone) {
  TuningConfig config = read(R"("autotuning": {"max_train_micro_batch_size_per_gpu": 4},
      "zero_optimization": {"stage": 2, "reduce_bucket_size": [50000, 5000]})");
  Bytes largest = 0;
  for (const auto& one : pool_of(config).candidates) {
    if (one.candidate.name == "z2_tmbspg4_rbs5000_gas1") largest = one.dry.peak_memory.allocated;
  }
  ASSERT_GT(largest, 0U);
  config.settings.memory_limit = largest;
  ASSERT_FALSE(plan_stages(config, 2).front().feasible);

  EXPECT_THAT(names(pool_of(config)),
              ElementsAre("z2_tmbspg2_rbs5000_gas2", "z2_tmbspg4_rbs5000_gas1"));
}

TEST(MakePool, DropsDominatedOnesOnlyIfAsked) {
  const std::string keys = R"("train_micro_batch_size_per_gpu": [1], "zero_optimization":
      {"stage": 1, "reduce_bucket_size": [5000, 50000]})";

  EXPECT_EQ(pool_of(read(keys)).candidates.size(), 2U);
  const Pool pruned = pool_of(read(keys, R"("prune_dominated": true)"));

  EXPECT_THAT(names(pruned), ElementsAre("z1_tmbspg1_rbs5000_gas1"));
  EXPECT_EQ(pruned.funnel.at(0).dominated, 1U);
  EXPECT_THAT(fates(pruned)[1], "dominated: needs nothing less than z1_tmbspg1_rbs5000_gas1");
}

TEST(MakePool, AskedTwiceSaysTheSame) {
  const TuningConfig config =
      read(R"("autotuning": {"fast": false}, "train_micro_batch_size_per_gpu": [1],
                                         "zero_optimization": {"stage": [1, 2]})");

  const Pool first = pool_of(config);
  const Pool second = pool_of(config);

  EXPECT_EQ(names(first), names(second));
  const auto all = names(first);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST(MakePool, TriesEveryLengthAndPrunesNoneForItsShorterOnes) {
  const TuningConfig config = read(R"("train_micro_batch_size_per_gpu": [1],
      "zero_optimization": {"stage": 2})",
                                   R"("lengths": [16, 8], "prune_dominated": true)");
  const Pool pool = pool_of(config);

  EXPECT_THAT(names(pool), ElementsAre("z2_sl16_tmbspg1_gas1", "z2_sl8_tmbspg1_gas1"));
  EXPECT_EQ(config.autotuning.metric, Metric::tokens);
  const Experiment shorter = make_experiment(config, 2, pool.candidates[1].candidate);
  EXPECT_EQ(shorter.settings.sequence_length, 8);
  EXPECT_EQ(amount_of(Metric::tokens, 3, shorter.settings), 24);
  EXPECT_EQ(amount_of(Metric::throughput, 3, shorter.settings), 3);
}

}  // namespace
}  // namespace dstune::pool_test
