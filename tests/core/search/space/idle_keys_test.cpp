#include "core/search/space/idle_keys.hpp"

#include <gtest/gtest.h>

#include "core/search/space/normal_form.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::idle_keys_test {
namespace {

using test::tiny_model;
using test::TinyExperiment;

/// Two values of each key that somebody might search.
const json::object kKeys = {
    {"allgather_partitions", {true, false}},
    {"allgather_bucket_size", {2, 4}},
    {"load_from_fp32_weights", {true, false}},
    {"elastic_checkpoint", {true, false}},
    {"ignore_unused_parameters", {true, false}},
    {"stage3_gather_16bit_weights_on_model_save", {true, false}},
    {"pipeline_loading_checkpoint", {true, false}},
    {"log_trace_cache_warnings", {true, false}},
    {"sub_group_size", {1, 500}},
    {"stage3_prefetch_bucket_size", {0, 500}},
    {"stage3_param_persistence_threshold", {0, 41}},
    {"stage3_model_persistence_threshold", {0, 41}},
    {"stage3_max_live_parameters", {0, 500}},
    {"stage3_max_reuse_distance", {0, 500}},
    {"stage3_module_granularity_threshold", {0, 500}},
    {"stage3_use_all_reduce_for_fetch_params", {true, false}},
    {"stage3_allgather_sequential", {true, false}},
    {"zero_hpz_partition_size", {1, 2}},
    {"zero_quantized_weights", {true, false}},
    {"zero_quantized_gradients", {true, false}},
    {"reduce_bucket_size", {300, 5000}},
    {"contiguous_gradients", {true, false}},
    {"reduce_scatter", {true, false}},
    {"overlap_comm", {true, false}},
    {"round_robin_gradients", {true, false}},
    {"use_multi_rank_bucket_allreduce", {true, false}},
};

/// Whether the values of `key` give one valid step, beside a few other settings.
bool is_idle(const std::string& key, const json::array& values, int stage) {
  const NormalForm form(make_model_parameters(tiny_model()), 4);
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (const bool contiguous : {true, false}) {
      std::set<std::string> forms;
      for (const auto& value : values) {
        TinyExperiment tiny;
        tiny.stage = stage;
        tiny.ranks = 4;
        tiny.dtype = dtype;
        tiny.zero["contiguous_gradients"] = contiguous;
        tiny.zero[key] = value;
        const StepConfig step = make_step_config(tiny.make());
        forms.insert(form.key(step) + (step.unsupported.empty() ? "" : step.unsupported.front()));
      }
      if (forms.size() > 1) return false;
    }
  }
  return true;
}

TEST(DoesNothing, IsTrueOfIdleKeysOnlyAndOfAllOfThese) {
  for (const auto& [key, values] : kKeys) {
    for (const int stage : {0, 1, 2, 3}) {
      EXPECT_EQ(does_nothing("/zero_optimization/" + std::string(key), stage),
                is_idle(key, values.as_array(), stage))
          << key << " in stage " << stage;
    }
  }
}

TEST(DoesNothing, SaysNothingOfOtherKeys) {
  EXPECT_FALSE(does_nothing("/zero_optimization/offload_optimizer", 0));
  EXPECT_FALSE(does_nothing("/zero_optimization/offload_param/device", 3));
  EXPECT_FALSE(does_nothing("/gradient_clipping", 0));
  EXPECT_FALSE(does_nothing("/bf16/enabled", 0));
}

}  // namespace
}  // namespace dstune::idle_keys_test
