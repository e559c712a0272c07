#include "core/train/memory_model.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/train/gradient_arrival.hpp"
#include "core/train/memory_given.hpp"
#include "core/train/zero/parameter_groups.hpp"

namespace dstune {
namespace {

constexpr std::int64_t kStage0Bucket = 500'000'000;

}  // namespace

Bytes largest_replicated_average(const Given& given, const std::vector<std::int64_t>& sizes,
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
Bytes replicated_update(const Given& given) {
  const std::int64_t total = given.parameters.total();
  const OptimizerConfig& optimizer = given.config.optimizer;
  if (given.config.dtype == DType::fp32) return times(total, given.scratch());
  if (is<LambSettings>(optimizer)) return times(total, 2 * given.e + 4);
  return times(total, uses_fused_wrapper(optimizer) ? 8 : 4 + given.scratch());
}

ModelStateMemory replicated(const Given& given) {
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

std::int64_t largest_sub_group(const Given& given) {
  std::int64_t largest = 0;
  for (const auto& group : given.groups) {
    std::int64_t fill = 0;
    for (const std::size_t tensor : group.tensors) {
      fill += given.shard(tensor);
      largest = std::max(largest, fill);
      if (fill >= given.config.sub_group_size) fill = 0;
    }
  }
  return largest;
}

struct Gathered {
  std::int64_t live = 0;     ///< elements of full tensors in use at once
  std::int64_t receive = 0;  ///< of the buffer from which several tensors are unpacked
};

Gathered gathered(const Given& given) {
  Gathered most;
  if (given.ranks == 1) return most;
  most.live = given.ranks * (given.shard(0) + given.shard(1));  // both embeddings
  for (const auto& module : given.parameters.modules) {
    if (module.parameters.size() == 1) continue;
    std::int64_t full = 0;
    std::int64_t padded = 0;
    for (const std::size_t tensor : module.parameters) {
      full += given.numel(tensor);
      padded += given.ranks * given.shard(tensor);
    }
    most.live = std::max(most.live, full);
    most.receive = std::max(most.receive, padded);
  }
  return most;
}

std::int64_t largest_staging(const Given& given) {
  const std::int64_t capacity = given.config.reduce_bucket_size;
  std::int64_t largest = 0;
  for (const auto& bucket : pack_buckets(given.arrival_order(), given.parameters, capacity)) {
    const std::int64_t first = given.numel(bucket.front());
    if (bucket.size() == 1 && first % given.ranks == 0) continue;
    if (!given.config.reduce_scatter && first <= capacity) continue;  // all-reduced in place
    std::int64_t padded = 0;
    for (const std::size_t tensor : bucket) padded += given.ranks * given.shard(tensor);
    largest = std::max(largest, padded);
  }
  return largest;
}

ModelStateMemory sharded(const Given& given) {
  std::int64_t shards = 0;
  std::int64_t largest = 0;
  for (std::size_t tensor = 0; tensor < given.parameters.tensors.size(); ++tensor) {
    shards += given.shard(tensor);
    largest = std::max(largest, given.shard(tensor));
  }
  const std::int64_t capacity = given.config.reduce_bucket_size;
  MemoryUse use;
  use.at(MemoryCategory::parameters) = times(shards, given.e);
  use.at(MemoryCategory::gradients) = times(shards, given.e);
  use.at(MemoryCategory::optimizer) = times(shards, 4 + given.state());
  use.at(MemoryCategory::buckets) = times(capacity, given.e);
  ModelStateMemory memory{use, use};

  const Gathered most = gathered(given);
  memory.peak.at(MemoryCategory::parameters) += times(most.live, given.e);
  ReductionWalk walk({.capacity = capacity, .owns = [](std::size_t) { return false; }}, shards);
  for (const Arrival& arrival : given.arrivals) walk.arrive(arrival);
  memory.peak.at(MemoryCategory::gradients) = times(walk.finish(), given.e);
  memory.peak.at(MemoryCategory::temporaries) =
      std::max({times(most.receive, given.e), times(largest_staging(given), given.e),
                given.config.dtype == DType::fp16 ? times(shards, 1) : 0, times(largest, 8),
                given.update(largest_sub_group(given), given.config.dtype)});
  return memory;
}

}  // namespace

ModelStateMemory predict_model_states(const StepConfig& config, const ModelParameters& parameters,
                                      int group_size, int rank) {
  const Given given{config,
                    parameters,
                    group_size,
                    rank,
                    make_parameter_groups(config.optimizer, parameters),
                    backward_arrivals(parameters),
                    size_of(config.dtype)};
  if (config.stage == 0) return replicated(given);
  if (config.stage == 3) return sharded(given);
  return config.uses_bf16_optimizer() ? predict_bf16_optimizer(given) : predict_partitioned(given);
}

}  // namespace dstune
