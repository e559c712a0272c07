#include "tests/oracle/memory_model.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/train/zero/layout/parameter_groups.hpp"
#include "tests/oracle/gradient_arrival.hpp"
#include "tests/oracle/memory_given.hpp"
#include "tests/oracle/memory_sharded.hpp"

namespace dstune::oracle {
namespace {

constexpr std::int64_t kStage0Bucket = 500'000'000;

}  // namespace

Bytes largest_replicated_average(const GivenRank& given, const std::vector<std::int64_t>& sizes,
                                 DType dtype) {
  Bytes largest = 0;
  std::int64_t fill = 0;
  int count = 0;
  for (const std::int64_t size : sizes) {
    fill += size;
    const Bytes flat = ++count > 1 ? times(fill, size_of(dtype)) : 0;
    largest = std::max(largest, flat + given.message(fill, dtype));
    if (fill <= kStage0Bucket) continue;
    fill = 0;
    count = 0;
  }
  return largest;
}

namespace {

/// Stage 0: temporaries of the update.
Bytes replicated_update(const GivenRank& given) {
  const std::int64_t total = given.parameters.total();
  const OptimizerConfig& optimizer = given.config.optimizer;
  if (given.config.dtype == DType::fp32) return times(total, given.scratch());
  if (is<LambSettings>(optimizer)) return times(total, 2 * given.e + 4);
  return times(total, uses_fused_wrapper(optimizer) ? 8 : 4 + given.scratch());
}

ModelStateMemory replicated(const GivenRank& given) {
  const std::int64_t total = given.parameters.total();
  const bool full = given.config.dtype == DType::fp32;
  MemoryUse use;
  use.at(MemoryCategory::parameters) = times(total, given.e);
  use.at(MemoryCategory::optimizer) =
      times(total, (full ? 0 : 4) + given.state()) + given.unused_state();
  ModelStateMemory memory{use, use};
  const std::int64_t gradients = accumulation_peak(given.arrivals, given.accumulates());
  memory.peak.at(MemoryCategory::gradients) = times(gradients, given.e);
  std::vector<std::int64_t> sizes;
  for (const auto& tensor : given.parameters.tensors) sizes.push_back(tensor.numel());
  memory.peak.at(MemoryCategory::temporaries) = std::max(
      largest_replicated_average(given, sizes, given.config.dtype), replicated_update(given));
  return memory;
}

}  // namespace

ModelStateMemory predict_model_states(const StepConfig& config, const ModelParameters& parameters,
                                      int group_size, int rank, Bytes attention_scratch) {
  if (config.stage == 3) {
    return predict_sharded(config, parameters, group_size, rank, attention_scratch);
  }
  const GivenRank given{config,
                        parameters,
                        group_size,
                        rank,
                        make_parameter_groups(config.optimizer, parameters),
                        backward_arrivals(parameters),
                        size_of(config.dtype)};
  ModelStateMemory memory = config.stage == 0              ? replicated(given)
                            : config.uses_bf16_optimizer() ? predict_bf16_optimizer(given)
                                                           : predict_partitioned(given);
  Bytes& temporaries = memory.peak.at(MemoryCategory::temporaries);
  temporaries = std::max(temporaries, attention_scratch);
  return memory;
}

}  // namespace dstune::oracle
