#include "core/search/space/known_faults.hpp"

#include <string_view>

#include "core/base/text.hpp"

namespace dstune {
namespace {

struct KnownFault {
  bool (*applies)(const StepConfig& config);
  std::string_view knobs;
  std::string_view fault;
  std::string_view versions;
  std::string_view source;
};

bool shares_buckets_between_streams(const StepConfig& config) {
  return (config.stage == 1 || config.stage == 2) && !config.uses_bf16_optimizer() &&
         config.overlap_comm && config.contiguous_gradients;
}

constexpr KnownFault kKnownFaults[] = {
    {[](const StepConfig& config) { return config.stage == 3 && config.hpz_partition_size > 1; },
     "zero_hpz_partition_size", "training may not converge, or the loss is far too large",
     "0.12 to 0.16, reports of 2025 are open",
     "https://github.com/deepspeedai/DeepSpeed/issues/7164"},
    {[](const StepConfig& config) { return config.stage == 3 && config.hpz_partition_size > 1; },
     "zero_hpz_partition_size",
     "the loss of the first step, and of the first after loading a "
     "checkpoint, is that of other weights",
     "0.16.9 and others before pull request 7707 of December 2025",
     "https://github.com/deepspeedai/DeepSpeed/issues/7606"},
    {shares_buckets_between_streams, "overlap_comm with contiguous_gradients",
     "gradients may be overwritten while they are reduced: NaN norms",
     "2025, before pull requests 7371 and 7805",
     "https://github.com/deepspeedai/DeepSpeed/issues/7188"},
    {shares_buckets_between_streams, "overlap_comm with contiguous_gradients",
     "with torch.compile gradients may be reduced before they are written: NaN",
     "before pull request 8080 of June 2026",
     "https://github.com/deepspeedai/DeepSpeed/issues/8061"},
    {[](const StepConfig& config) {
       return config.stage == 3 && config.contiguous_gradients && !config.reduce_scatter;
     },
     "reduce_scatter false", "gradients of tensors as large as the bucket are not reduced",
     "before pull request 4321 of September 2023",
     "https://github.com/deepspeedai/DeepSpeed/pull/4321"},
    {[](const StepConfig& config) { return config.stage == 3 && config.quantized_weights; },
     "zero_quantized_weights", "training may crash", "0.12.5",
     "https://github.com/deepspeedai/DeepSpeed/issues/4852"},
};

}  // namespace

std::vector<std::string> known_faults(const StepConfig& config) {
  std::vector<std::string> sentences;
  for (const KnownFault& known : kKnownFaults) {
    if (!known.applies(config)) continue;
    sentences.push_back(concat("stage ", config.stage, " with ", known.knobs, ": ", known.fault,
                               " (DeepSpeed ", known.versions, "; ", known.source,
                               "): check that your version has it mended"));
  }
  return sentences;
}

}  // namespace dstune
