#include "core/experiment/step_config.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"

namespace dstune::step_config_test {
namespace {

using Names = std::vector<std::string>;

StepConfig read(const char* text) { return make_step_config(parse_json(text).as_object()); }

TEST(StepConfig, HasTheDefaultsOfTheReleaseThatItIsFor) {
  const StepConfig of_0_16 = read(R"({"dstune": {"deepspeed_version": "0.16.9"}})");
  const StepConfig of_0_18 = read(R"({"dstune": {"deepspeed_version": "0.18.2"}})");

  EXPECT_EQ(of_0_16.gradient_clipping, 0);
  EXPECT_TRUE(of_0_16.immediate_grad_update);
  EXPECT_FALSE(of_0_16.leaf_module.default_classes);
  EXPECT_FALSE(of_0_18.check_grad_overflow);
  EXPECT_FALSE(of_0_18.immediate_grad_update);
  EXPECT_TRUE(of_0_18.leaf_module.default_classes);
  EXPECT_TRUE(of_0_18.behaviour.waits_for_each_bucket);
}

Names unsupported_in(const char* version, const char* keys) {
  return read(concat(R"({"bf16": {"enabled": true}, "dstune": {"deepspeed_version": ")", version,
                     R"("}, )", keys, "}")
                  .c_str())
      .unsupported;
}

TEST(StepConfig, ModelsNoBf16OptimizerWhereOnlyOlderReleasesHaveIt) {
  constexpr const char* kStage0 = R"("zero_optimization": {"stage": 0})";
  const Names names = {"bf16.enabled in stage 0 before DeepSpeed 0.17.6"};

  EXPECT_EQ(unsupported_in("0.17.5", kStage0), names);
  EXPECT_EQ(unsupported_in("0.17.6", kStage0), Names{});
  EXPECT_EQ(unsupported_in("0.17.5", R"("zero_optimization": {"stage": 1})"), Names{});
}

TEST(StepConfig, ModelsNoBf16OptimizerThatAReleaseDoesNotMake) {
  constexpr const char* kSummed =
      R"("zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": "fp32"})";
  const Names names = {"data_types.grad_accum_dtype in stage 1 of DeepSpeed 0.17.6 to 0.18.4"};

  EXPECT_EQ(unsupported_in("0.17.5", kSummed), Names{});
  EXPECT_EQ(unsupported_in("0.17.6", kSummed), names);
  EXPECT_EQ(unsupported_in("0.18.4", kSummed), names);
  EXPECT_EQ(unsupported_in("0.18.5", kSummed), Names{});
}

TEST(StepConfig, ChecksBf16OnlyInReleasesThatCan) {
  constexpr const char* kText =
      R"({"bf16": {"enabled": true, "check_grad_overflow": true},
          "dstune": {"deepspeed_version": "0.17.X"}})";
  const auto checks = [&](char patch) {
    std::string text = kText;
    text[text.find('X')] = patch;
    return read(text.c_str()).check_grad_overflow;
  };

  EXPECT_FALSE(checks('0'));
  EXPECT_TRUE(checks('1'));
}

TEST(StepConfig, HasDeepSpeedsDefaults) {
  const StepConfig config = read("{}");

  EXPECT_EQ(config.stage, 0);
  EXPECT_EQ(config.dtype, DType::fp32);
  EXPECT_EQ(config.gradient_clipping, 1);
  EXPECT_TRUE(config.check_grad_overflow);
  EXPECT_TRUE(config.contiguous_gradients);
  EXPECT_TRUE(config.use_multi_rank_bucket_allreduce);
  EXPECT_FALSE(config.sum_gradients);
  EXPECT_EQ(config.reduce_bucket_size, 500'000'000);
  EXPECT_EQ(config.sub_group_size, 1'000'000'000);
  EXPECT_EQ(config.loss_scale.hysteresis, 2);
  EXPECT_TRUE(config.reduce_scatter);
  EXPECT_TRUE(config.optimizer.client);
  EXPECT_TRUE(config.unsupported.empty());
}

TEST(StepConfig, OverlapsByDefaultInStage3Alone) {
  EXPECT_FALSE(read(R"({"zero_optimization": {"stage": 2}})").overlap_comm);
  EXPECT_TRUE(read(R"({"zero_optimization": {"stage": 3}})").overlap_comm);
}

struct Knob {
  const char* json;
  const char* name;     ///< in StepConfig::unsupported
  int first_stage = 1;  ///< of those in which it is no part of the model
};

const Knob kOfAnyStage[] = {
    {R"({"fp16": {"fp16_master_weights_and_grads": true}})", "fp16.fp16_master_weights_and_grads"},
    {R"({"bf16": {"bf16_master_weights_and_grads": true}})", "bf16.bf16_master_weights_and_grads"},
    {R"({"bf16": {"bf16_optimizer_states": true}})", "bf16.bf16_optimizer_states"},
    {R"({"data_types": {"grad_accum_dtype": "bf16"}})", "data_types.grad_accum_dtype"},
    {R"({"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}})",
     "data_types.grad_accum_dtype"},
    {R"({"optimizer": {"type": "Muon"}})", "optimizer.type Muon"},
    {R"({"optimizer": {"type": "Adam", "legacy_fusion": true}})", "optimizer.legacy_fusion"},
    {R"({"amp": {"enabled": true}})", "amp.enabled"},
    {R"({"torch_autocast": {"enabled": true}})", "torch_autocast.enabled"},
    {R"({"progressive_layer_drop": {"enabled": true}})", "progressive_layer_drop.enabled"},
    {R"({"hybrid_engine": {"enabled": true}})", "hybrid_engine.enabled"},
    {R"({"curriculum_learning": {"enabled": true}})", "curriculum_learning.enabled"},
    {R"({"data_efficiency": {"enabled": true}})", "data_efficiency.enabled"},
    {R"({"eigenvalue": {"enabled": true}})", "eigenvalue.enabled"},
    {R"({"elasticity": {"enabled": true}})", "elasticity.enabled"},
    {R"({"sparse_gradients": true})", "sparse_gradients"},
    {R"({"compile": {"deepcompile": true}})", "compile.deepcompile"},
    {R"({"sparse_attention": {"mode": "fixed"}})", "sparse_attention"},
    {R"({"compression_training": {"layer_reduction": {"enabled": true}}})", "compression_training"},
    {R"({"pipeline": {"stages": 2}})", "pipeline"},
    {R"({"tensor_parallel": {"autotp_size": 2}})", "tensor_parallel.autotp_size"},
    {R"({"expert_parallel": {"enabled": true}})", "expert_parallel.enabled"},
    {R"({"sequence_parallel_size": 2})", "sequence_parallel_size"},
};

// Keys of zero_optimization, without the stage; the names are theirs.
const Knob kOfZero[] = {
    {R"({"cpu_offload": true})", "cpu_offload", 0},
    {R"({"cpu_offload_param": true})", "cpu_offload_param", 3},
    {R"({"zenflow": {}})", "zenflow"},
    {R"({"compute_grad_norm": false})", "compute_grad_norm: false"},
};

Names unsupported_in_stage(const char* zero_keys, int stage) {
  json::object zero = parse_json(zero_keys).as_object();
  zero["stage"] = stage;
  return make_step_config({{"zero_optimization", zero}}).unsupported;
}

std::string name_of(const testing::TestParamInfo<Knob>& knob) {
  std::string name = concat(knob.param.name, "_", knob.index);  // one key can be there twice
  const auto separates = [](char letter) {
    return letter == '.' || letter == ' ' || letter == ':';
  };
  std::replace_if(name.begin(), name.end(), separates, '_');
  return name;
}

class KnobOfAnyStage : public testing::TestWithParam<Knob> {};
class KnobOfZero : public testing::TestWithParam<Knob> {};

INSTANTIATE_TEST_SUITE_P(StepConfig, KnobOfAnyStage, testing::ValuesIn(kOfAnyStage), name_of);
INSTANTIATE_TEST_SUITE_P(StepConfig, KnobOfZero, testing::ValuesIn(kOfZero), name_of);

TEST_P(KnobOfAnyStage, IsNamedWhereItIsNotModelled) {
  EXPECT_EQ(read(GetParam().json).unsupported, Names{GetParam().name});
}

TEST_P(KnobOfZero, IsNamedInTheStagesThatReadIt) {
  const Names named = {std::string("zero_optimization.") + GetParam().name};

  for (const int stage : {0, 1, 2, 3}) {
    EXPECT_EQ(unsupported_in_stage(GetParam().json, stage),
              stage < GetParam().first_stage ? Names{} : named)
        << "stage " << stage;
  }
}

TEST(StepConfig, ReadsTheKeysOfStage3ByBothNames) {
  const auto read_zero = [](const char* keys) {
    json::object zero = parse_json(keys).as_object();
    zero["stage"] = 3;
    return make_step_config({{"zero_optimization", zero}});
  };
  const StepConfig defaults = read_zero("{}");
  const StepConfig config = read_zero(R"({
    "stage3_prefetch_bucket_size": 1, "stage3_param_persistence_threshold": 2,
    "stage3_model_persistence_threshold": 9223372036854775807,
    "stage3_max_live_parameters": 4, "max_reuse_distance": 5,
    "stage3_module_granularity_threshold": 6e3, "stage3_allgather_sequential": true,
    "use_all_reduce_for_fetch_params": true,
    "leaf_module": {"classes": ["A"], "names": ["b"], "name_suffixes": ["c", "d"]}})");

  EXPECT_EQ(defaults.model_persistence_threshold, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(defaults.module_granularity_threshold, 0);
  EXPECT_EQ(config.prefetch_bucket_size, 1);
  EXPECT_EQ(config.param_persistence_threshold, 2);
  EXPECT_EQ(config.model_persistence_threshold, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(config.max_live_parameters, 4);
  EXPECT_EQ(config.max_reuse_distance, 5);
  EXPECT_EQ(config.module_granularity_threshold, 6000);
  EXPECT_TRUE(config.allgather_sequential);
  EXPECT_TRUE(config.use_all_reduce_for_fetch_params);
  EXPECT_EQ(config.leaf_module.classes, Names{"A"});
  EXPECT_EQ(config.leaf_module.names, Names{"b"});
  EXPECT_EQ(config.leaf_module.name_suffixes, (Names{"c", "d"}));
  EXPECT_TRUE(config.unsupported.empty());
}

TEST(StepConfig, NamesTheQuantizationThatIsNotModelledWhereItIsRead) {
  const std::pair<const char*, const char*> named[] = {
      {R"({"zero_quantized_weights": true, "stage3_allgather_sequential": true})",
       "zero_quantized_weights with stage3_allgather_sequential"},
      {R"({"zero_quantized_weights": true, "mics_shard_size": 2})",
       "zero_quantized_weights with mics_shard_size"},
      {R"({"zero_quantized_gradients": true, "mics_shard_size": 2})",
       "zero_quantized_gradients with mics_shard_size"},
      {R"({"zero_quantized_gradients": true, "zeropp_loco_param": {"err_beta": 0.8}})",
       "zeropp_loco_param"}};
  const char* modelled = R"({"zero_quantized_weights": true, "zero_quantized_gradients": true,
                             "zero_quantized_nontrainable_weights": true,
                             "zero_hpz_partition_size": 2})";

  for (const auto& [keys, name] : named) {
    EXPECT_EQ(unsupported_in_stage(keys, 3), Names{concat("zero_optimization.", name)});
  }
  EXPECT_EQ(unsupported_in_stage(modelled, 3), Names{});
  EXPECT_EQ(unsupported_in_stage(R"({"zeropp_loco_param": {}})", 3), Names{});
  EXPECT_EQ(unsupported_in_stage(named[0].first, 2), Names{});
}

// Stage 3 lays parameters out in another way, and reads no such key.
TEST(StepConfig, NamesAlignmentInStages1And2Alone) {
  const char* const aligned = R"({"parameter_alignment": true})";
  const Names named = {"zero_optimization.parameter_alignment"};

  for (const int stage : {1, 2}) EXPECT_EQ(unsupported_in_stage(aligned, stage), named);
  for (const int stage : {0, 3}) EXPECT_EQ(unsupported_in_stage(aligned, stage), Names{});
  EXPECT_EQ(unsupported_in_stage(R"({"parameter_alignment": false})", 1), Names{});
}

TEST(StepConfig, NamesWhatStage3AloneReadsThereAlone) {
  const Knob knobs[] = {{R"({"zero_hpz_partition_size": 2, "mics_shard_size": 2})",
                         "mics_shard_size with zero_hpz_partition_size"},
                        {R"({"mics_shard_size": 2, "mics_hierarchical_params_gather": true})",
                         "mics_hierarchical_params_gather"},
                        {R"({"enable_sanity_checks": true})", "enable_sanity_checks"}};
  for (const Knob& knob : knobs) {
    for (const int stage : {0, 1, 2}) EXPECT_EQ(unsupported_in_stage(knob.json, stage), Names{});
    EXPECT_EQ(unsupported_in_stage(knob.json, 3),
              Names{std::string("zero_optimization.") + knob.name});
  }
  for (const char* modelled : {R"({"zero_hpz_partition_size": 2})", R"({"mics_shard_size": 2})",
                               R"({"zero_hpz_partition_size": 1, "mics_shard_size": -1})",
                               R"({"memory_efficient_linear": false})"}) {
    for (const int stage : {0, 1, 2, 3}) EXPECT_EQ(unsupported_in_stage(modelled, stage), Names{});
  }
}

// Releases before 0.19.4 install their own linear function with zero.Init only.
TEST(StepConfig, SaysWhoseLinearFunctionStage3Runs) {
  const auto is_replaced = [](const char* zero, const char* ours) {
    return read(concat(R"({"zero_optimization": {"stage": )", zero, R"(}, "dstune": {)", ours, "}}")
                    .c_str())
        .replaces_linear();
  };
  EXPECT_TRUE(is_replaced("3", ""));
  EXPECT_TRUE(is_replaced("3", R"("zero_init": false)"));
  EXPECT_TRUE(is_replaced("3", R"("zero_init": false, "deepspeed_version": "0.19.4")"));
  EXPECT_TRUE(is_replaced("3", R"("deepspeed_version": "0.19.3")"));
  EXPECT_FALSE(is_replaced("3", R"("zero_init": false, "deepspeed_version": "0.19.3")"));
  EXPECT_FALSE(is_replaced(R"(3, "memory_efficient_linear": false)", ""));
  EXPECT_FALSE(is_replaced("2", ""));
}

TEST(StepConfig, RefusesNumbersThatAnIntCannotHold) {
  for (const char* shard : {"2147483648", "4294967298", "3e9", "1e30"}) {
    for (const char* key : {"mics_shard_size", "zero_hpz_partition_size"}) {
      const std::string text = concat(R"({"zero_optimization": {")", key, R"(": )", shard, "}}");
      EXPECT_THROW(read(text.c_str()), std::invalid_argument) << text;
    }
  }
}

TEST(StepConfig, LeavesAutoOfApexToTheTrainingProgram) {
  EXPECT_EQ(read(R"({"amp": {"enabled": "auto"}})").unsupported, Names{});
}

TEST(StepConfig, NamesNothingThatIsSwitchedOff) {
  const StepConfig config = read(R"({
    "fp16": {"enabled": true, "fp16_master_weights_and_grads": false},
    "communication_data_type": "fp16", "data_types": {"grad_accum_dtype": null},
    "optimizer": {"type": "AdamW", "legacy_fusion": false},
    "amp": {"enabled": false}, "eigenvalue": {}, "sparse_gradients": false,
    "compile": {"deepcompile": false}, "pipeline": {}, "prescale_gradients": false,
    "gradient_predivide_factor": 1.0, "gradient_allreduce_op": "mean",
    "tensor_parallel": {"autotp_size": 0}, "sequence_parallel_size": 1,
    "zero_optimization": {
      "stage": 3, "offload_optimizer": {"device": "none"}, "offload_param": null,
      "cpu_offload": false, "zero_hpz_partition_size": 1, "mics_shard_size": -1, "zenflow": null,
      "contiguous_gradients": true, "use_multi_rank_bucket_allreduce": true
    }
  })");

  EXPECT_EQ(config.unsupported, Names{});
}

TEST(StepConfig, NamesAllThatIsNotModelled) {
  const StepConfig config = read(R"({"amp": {"enabled": true}, "optimizer": {"type": "Muon"}})");

  EXPECT_THAT(config.unsupported,
              testing::UnorderedElementsAre("optimizer.type Muon", "amp.enabled"));
}

TEST(StepConfig, RejectsWrongTypes) {
  EXPECT_THROW(read(R"({"gradient_clipping": "1"})"), std::invalid_argument);
}

}  // namespace
}  // namespace dstune::step_config_test
