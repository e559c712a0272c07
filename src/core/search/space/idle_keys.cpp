#include "core/search/space/idle_keys.hpp"

#include <algorithm>

namespace dstune {
namespace {

constexpr std::string_view kZero = "/zero_optimization/";

/// Read by nothing that runs in a step.
constexpr std::string_view kNeverRead[] = {
    "allgather_partitions",        "allgather_bucket_size",
    "load_from_fp32_weights",      "elastic_checkpoint",
    "ignore_unused_parameters",    "stage3_gather_16bit_weights_on_model_save",
    "pipeline_loading_checkpoint", "log_trace_cache_warnings",
};

/// Of stage 3 alone.
constexpr std::string_view kOfStage3[] = {
    "sub_group_size",
    "stage3_prefetch_bucket_size",
    "stage3_param_persistence_threshold",
    "stage3_model_persistence_threshold",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_module_granularity_threshold",
    "stage3_use_all_reduce_for_fetch_params",
    "stage3_allgather_sequential",
    "zero_hpz_partition_size",
    "zero_quantized_weights",
    "zero_quantized_gradients",
    "offload_param",
    "cpu_offload_param",
};

/// Of stages 1 and 2.
constexpr std::string_view kOfStages1And2[] = {"round_robin_gradients",
                                               "use_multi_rank_bucket_allreduce"};

/// Of all stages but 0.
constexpr std::string_view kOfZero[] = {"reduce_bucket_size", "contiguous_gradients",
                                        "reduce_scatter", "overlap_comm"};

template <class List>
bool contains(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

}  // namespace

bool does_nothing(std::string_view pointer, int stage) {
  if (!pointer.starts_with(kZero)) return false;
  const std::string_view inner = pointer.substr(kZero.size());
  const std::string_view key = inner.substr(0, inner.find('/'));
  return contains(kNeverRead, key) || (stage < 3 && contains(kOfStage3, key)) ||
         ((stage == 0 || stage == 3) && contains(kOfStages1And2, key)) ||
         (stage == 0 && contains(kOfZero, key));
}

}  // namespace dstune
