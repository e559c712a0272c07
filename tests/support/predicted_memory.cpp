#include "tests/support/predicted_memory.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/device/operations/attention.hpp"
#include "core/train/families/families.hpp"
#include "core/train/zero/layout/shard_groups.hpp"
#include "tests/oracle/activation_memory.hpp"
#include "tests/oracle/memory_model.hpp"

namespace dstune::test {

namespace {

std::int64_t attention_scratch(const Experiment& experiment, const StepConfig& config,
                               const Device* device) {
  const ModelSpec& model = experiment.settings.model;
  if (device == nullptr) return 0;
  return device->attention_workspace({.batch = config.micro_batch,
                                      .sequence = experiment.settings.sequence_length,
                                      .heads = model.num_heads,
                                      .kv_heads = model.num_heads,
                                      .head_size = model.head_size()});
}

Bytes activations(const Experiment& experiment, const StepConfig& config) {
  const RunSettings& settings = experiment.settings;
  // Without scratch: what the category alone needs at its highest.
  return oracle::predict_activations(settings.model, config.micro_batch, settings.sequence_length,
                                     config.dtype)
             .peak +
         8 * static_cast<Bytes>(config.micro_batch * settings.sequence_length);  // tokens, int64
}

const char* const kStage3Knobs[] = {
    R"({"stage3_param_persistence_threshold": 0, "reduce_bucket_size": 100})",
    R"({"stage3_param_persistence_threshold": 0, "stage3_max_live_parameters": 0,
        "stage3_max_reuse_distance": 0, "reduce_bucket_size": 100})",
    R"({"stage3_param_persistence_threshold": 11, "stage3_prefetch_bucket_size": 40,
        "stage3_max_live_parameters": 300, "stage3_max_reuse_distance": 200})",
    R"({"stage3_param_persistence_threshold": 6, "stage3_prefetch_bucket_size": 150,
        "stage3_max_live_parameters": 500, "stage3_max_reuse_distance": 0,
        "reduce_bucket_size": 70})",
    R"({"stage3_param_persistence_threshold": 20, "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 400, "reduce_bucket_size": 200})",
    R"({"stage3_param_persistence_threshold": 10, "stage3_allgather_sequential": true,
        "stage3_max_live_parameters": 400, "stage3_max_reuse_distance": 100})",
    R"({"stage3_param_persistence_threshold": 10, "stage3_max_reuse_distance": 100,
        "stage3_use_all_reduce_for_fetch_params": true, "stage3_prefetch_bucket_size": 60,
        "stage3_max_live_parameters": 400})",
    R"({"stage3_param_persistence_threshold": 6, "stage3_model_persistence_threshold": 11})",
    R"({"stage3_param_persistence_threshold": 0, "contiguous_gradients": false,
        "reduce_bucket_size": 100, "stage3_prefetch_bucket_size": 60})",
    R"({"contiguous_gradients": false, "reduce_scatter": false, "reduce_bucket_size": 60})",
    R"({"reduce_scatter": false, "reduce_bucket_size": 100,
        "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 60})",
    R"({"leaf_module": {"classes": ["GPT2Attention"]}, "reduce_bucket_size": 60,
        "stage3_param_persistence_threshold": 10, "stage3_prefetch_bucket_size": 60})",
    R"({"zero_hpz_partition_size": 2, "stage3_param_persistence_threshold": 10,
        "stage3_prefetch_bucket_size": 60, "stage3_max_reuse_distance": 100})",
    R"({"zero_hpz_partition_size": 4, "stage3_param_persistence_threshold": 0,
        "stage3_max_live_parameters": 0, "stage3_max_reuse_distance": 0})",
    R"({"mics_shard_size": 2, "stage3_param_persistence_threshold": 10, "reduce_bucket_size": 100,
        "stage3_prefetch_bucket_size": 60, "stage3_max_reuse_distance": 100})",
    R"({"mics_shard_size": 1, "reduce_bucket_size": 100})",
    R"({"stage3_module_granularity_threshold": 40, "reduce_bucket_size": 60, "sub_group_size": 90,
        "stage3_param_persistence_threshold": 0, "stage3_max_reuse_distance": 300})"};

}  // namespace

MemoryUse predict_peak(const Experiment& experiment, int rank, const Device* device) {
  const StepConfig config = experiment.ds_config.step();
  const auto parameters = make_model_parameters(experiment.settings.model);
  const auto scratch = static_cast<Bytes>(attention_scratch(experiment, config, device));
  MemoryUse use =
      oracle::predict_model_states(config, parameters, experiment.ranks, rank, 4 * scratch).peak;
  use.at(MemoryCategory::activations) = activations(experiment, config);
  return use;
}

void expect_equal(const MemoryUse& measured, const MemoryUse& predicted, const std::string& what) {
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    EXPECT_EQ(measured.bytes[i], predicted.bytes[i])
        << name_of(static_cast<MemoryCategory>(i)) << ": " << what;
  }
}

std::vector<json::object> stage3_knobs() {
  std::vector<json::object> all;
  for (const char* zero : kStage3Knobs) all.push_back(json::parse(zero).as_object());
  return all;
}

bool shard_sizes_divide(const TinyExperiment& tiny) {
  return unsupported_shard_sizes(tiny.make().ds_config.step(), tiny.ranks).empty();
}

}  // namespace dstune::test
