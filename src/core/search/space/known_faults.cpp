#include "core/search/space/known_faults.hpp"

#include <string_view>

#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr DeepSpeedVersion kStillThere{1'000'000, 0, 0};

struct KnownFault {
  bool (*applies)(const StepConfig& config);
  std::string_view knobs;
  std::string_view fault;
  std::string_view versions;
  std::string_view source;
  DeepSpeedVersion mended =
      kStillThere;  ///< the first release without the fault; kStillThere: not known
  DeepSpeedVersion first = kOldestDeepSpeed;
};

bool overlaps_in_stages_1_and_2(const StepConfig& config) {
  return (config.stage == 1 || config.stage == 2) && !config.uses_bf16_optimizer() &&
         config.overlap_comm;
}

bool shares_buckets_between_streams(const StepConfig& config) {
  return overlaps_in_stages_1_and_2(config) && config.contiguous_gradients;
}

bool has_secondary_shards(const StepConfig& config) {
  return config.stage == 3 && config.hpz_partition_size > 1;
}

bool keeps_sums_of_skipped_steps(const StepConfig& config) {
  const bool may_skip =
      config.dtype == DType::fp16 || (config.dtype == DType::bf16 && config.check_grad_overflow);
  return config.sums_in_partition() && config.offloads_optimizer() && may_skip;
}

constexpr KnownFault kKnownFaults[] = {
    {has_secondary_shards, "zero_hpz_partition_size",
     "training may not converge, or the loss is far too large",
     "0.12 to 0.16, reports of 2025 are open",
     "https://github.com/deepspeedai/DeepSpeed/issues/7164"},
    {has_secondary_shards,
     "zero_hpz_partition_size",
     "the loss of the first step, and of the first after loading a "
     "checkpoint, is that of other weights",
     "before 0.18.3",
     "https://github.com/deepspeedai/DeepSpeed/issues/7606",
     {0, 18, 3}},
    {has_secondary_shards,
     "zero_hpz_partition_size",
     "parameters too small for all of a node's shards stop the training",
     "before 0.19.5",
     "https://github.com/deepspeedai/DeepSpeed/pull/8210",
     {0, 19, 5}},
    {shares_buckets_between_streams,
     "overlap_comm with contiguous_gradients",
     "gradients may be overwritten while they are reduced: NaN norms",
     "before 0.17.5",
     "https://github.com/deepspeedai/DeepSpeed/issues/7188",
     {0, 17, 5}},
    {overlaps_in_stages_1_and_2,
     "overlap_comm",
     "memory of gradients may be used again before their reduction is over: NaN",
     "before 0.19.0",
     "https://github.com/deepspeedai/DeepSpeed/pull/7965",
     {0, 19, 0}},
    {shares_buckets_between_streams,
     "overlap_comm with contiguous_gradients",
     "with torch.compile gradients may be reduced before they are written: NaN",
     "before 0.19.3",
     "https://github.com/deepspeedai/DeepSpeed/issues/8061",
     {0, 19, 3}},
    {[](const StepConfig& config) {
       return config.uses_bf16_optimizer() && !config.immediate_grad_update;
     },
     "grad_accum_dtype fp32 without immediate_grad_update",
     "the last micro-batch's gradients are not averaged over the ranks",
     "0.18.5 to 0.18.9",
     "https://github.com/deepspeedai/DeepSpeed/pull/7985",
     {0, 19, 0},
     {0, 18, 5}},
    {[](const StepConfig& config) {
       return config.stage == 3 && config.use_all_reduce_for_fetch_params;
     },
     "stage3_use_all_reduce_for_fetch_params",
     "parameters that the ranks do not divide may be gathered wrong",
     "before 0.19.4",
     "https://github.com/deepspeedai/DeepSpeed/pull/8158",
     {0, 19, 4}},
    {keeps_sums_of_skipped_steps,
     "grad_accum_dtype fp32 and offload_optimizer",
     "after one step with inf or NaN, as fp16 has at its start, all others are skipped: its sums "
     "stay",
     "0.19.8",
     "https://github.com/deepspeedai/DeepSpeed/blob/v0.19.8/deepspeed/runtime/zero/"
     "stage_1_and_2.py#L3050",
     kStillThere,
     {0, 19, 8}},
    {[](const StepConfig& config) { return config.stage == 3 && config.quantized_weights; },
     "zero_quantized_weights", "training may crash", "0.12.5",
     "https://github.com/deepspeedai/DeepSpeed/issues/4852"},
};

}  // namespace

std::vector<std::string> known_faults(const StepConfig& config) {
  std::vector<std::string> sentences;
  for (const KnownFault& known : kKnownFaults) {
    const bool has_release = config.version >= known.first && config.version < known.mended;
    if (!has_release || !known.applies(config)) continue;
    sentences.push_back(concat("stage ", config.stage, " with ", known.knobs, ": ", known.fault,
                               " (DeepSpeed ", known.versions, "; ", known.source,
                               "): check that your version has the fix"));
  }
  return sentences;
}

}  // namespace dstune
