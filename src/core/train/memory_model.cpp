#include "core/train/memory_model.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/train/gradient_arrival.hpp"
#include "core/train/zero/parameter_groups.hpp"

namespace dstune {
namespace {

constexpr std::int64_t kStage0Bucket = 500'000'000;

using Order = std::vector<std::size_t>;

Bytes times(std::int64_t elements, Bytes each) { return static_cast<Bytes>(elements) * each; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What all stages' formulas are made of.
struct Given {
  const StepConfig& config;
  const ModelParameters& parameters;
  std::int64_t ranks;
  std::int64_t rank;
  std::vector<ParameterGroup> groups;
  std::vector<Arrival> arrivals;
  Bytes e;

  std::int64_t numel(std::size_t tensor) const { return parameters.tensors[tensor].numel(); }
  std::int64_t shard(std::size_t tensor) const { return ceil_div(numel(tensor), ranks); }
  bool accumulates() const { return config.accumulation_steps > 1; }

  Order arrival_order() const {
    Order order;
    for (const Arrival& arrival : arrivals) order.push_back(arrival.tensor);
    return order;
  }
  Order group_order() const {
    Order order;
    for (const auto& group : groups) {
      order.insert(order.end(), group.tensors.begin(), group.tensors.end());
    }
    return order;
  }
  /// Per parameter: what the optimizer keeps, and its scratch in an update.
  Bytes state() const { return 4 * static_cast<Bytes>(state_tensors(config.optimizer)); }
  Bytes scratch() const {
    const double decay = groups.empty() ? 0 : groups.front().weight_decay;
    return 4 * static_cast<Bytes>(scratch_tensors(config.optimizer, decay));
  }
  /// State that nobody uses, for every parameter on every rank.
  Bytes unused_state() const {
    const bool exists = leaves_unused_state(config.optimizer, config.stage, config.dtype);
    return exists ? times(parameters.total(), e) : 0;
  }
  /// Of a partition or sub-group of `elements`: gradients in the model dtype and their fp32 copy,
  /// then that copy and the optimizer's scratch.
  Bytes update(std::int64_t elements) const {
    const Bytes cast = config.dtype == DType::fp32 ? 4 : e + 4;
    return times(elements, std::max(cast, 4 + scratch()));
  }
};

std::int64_t largest_replicated_bucket(const Given& given) {
  std::int64_t largest = 0;
  std::int64_t fill = 0;
  for (std::size_t tensor = 0; tensor < given.parameters.tensors.size(); ++tensor) {
    fill += given.numel(tensor);
    largest = std::max(largest, fill);
    if (fill > kStage0Bucket) fill = 0;
  }
  return largest;
}

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
  memory.peak.at(MemoryCategory::temporaries) =
      std::max(times(largest_replicated_bucket(given), given.e), replicated_update(given));
  return memory;
}

/// Stages 1 and 2: where each tensor lies in its group's flat buffer.
struct Flats {
  std::vector<std::int64_t> begin;      // by tensor
  std::vector<std::int64_t> partition;  // by tensor: elements per rank of its group
  std::int64_t all_partitions = 0;      // of one rank
  std::int64_t largest_partition = 0;

  /// Elements of [begin, begin + numel) that `rank` owns.
  std::int64_t owned(std::size_t tensor, std::int64_t numel, std::int64_t rank) const {
    const std::int64_t first = std::max(begin[tensor], rank * partition[tensor]);
    const std::int64_t last = std::min(begin[tensor] + numel, (rank + 1) * partition[tensor]);
    return std::max<std::int64_t>(last - first, 0);
  }
};

Order dealt(const Order& tensors, std::size_t hands) {
  Order order;
  for (std::size_t hand = 0; hand < hands; ++hand) {
    for (std::size_t i = hand; i < tensors.size(); i += hands) order.push_back(tensors[i]);
  }
  return order;
}

Flats lay_out(const Given& given) {
  Flats flats;
  flats.begin.resize(given.parameters.tensors.size());
  flats.partition.resize(given.parameters.tensors.size());
  const auto hands = static_cast<std::size_t>(given.config.round_robin_gradients ? given.ranks : 1);
  for (const auto& group : given.groups) {
    std::int64_t length = 0;
    for (const std::size_t tensor : dealt(group.tensors, hands)) {
      flats.begin[tensor] = length;
      length += given.numel(tensor);
    }
    const std::int64_t partition = 2 * ceil_div(length, 2 * given.ranks);
    for (const std::size_t tensor : group.tensors) flats.partition[tensor] = partition;
    flats.all_partitions += partition;
    flats.largest_partition = std::max(flats.largest_partition, partition);
  }
  return flats;
}

/// R: slices of one owner that lie side by side are one; a call takes slices until they exceed K.
std::int64_t largest_flatten(const Given& given, const Flats& flats, const Order& order) {
  std::int64_t largest = 0;
  for (const auto& bucket :
       pack_buckets(order, given.parameters, given.config.reduce_bucket_size)) {
    std::vector<std::pair<std::int64_t, std::int64_t>> slices;  // owner, elements
    for (const std::size_t tensor : bucket) {
      for (std::int64_t owner = 0; owner < given.ranks; ++owner) {
        const std::int64_t part = flats.owned(tensor, given.numel(tensor), owner);
        if (part == 0) continue;
        if (slices.empty() || slices.back().first != owner) slices.emplace_back(owner, 0);
        slices.back().second += part;
      }
    }
    std::int64_t fill = 0;
    int count = 0;
    for (const auto& [owner, part] : slices) {
      fill += part;
      if (++count > 1) largest = std::max(largest, fill);
      if (fill <= given.config.reduce_bucket_size) continue;
      fill = 0;
      count = 0;
    }
  }
  return largest;
}

std::int64_t partitioned_gradients(const Given& given, ReductionWalk::Rules rules) {
  const bool more = given.accumulates();
  const bool stage_1 = given.config.stage == 1;
  const std::int64_t total = given.parameters.total();
  if (stage_1 && !given.config.overlap_comm) {
    ReductionWalk walk(std::move(rules), total);
    for (const std::size_t tensor : given.group_order()) {
      walk.reduce(tensor, given.numel(tensor), 0);
    }
    return std::max(walk.finish(), accumulation_peak(given.arrivals, more));
  }
  rules.accumulated = stage_1 && more;
  const std::int64_t sum = stage_1 ? total : rules.partition;
  ReductionWalk walk(std::move(rules), more ? sum : 0);
  for (const Arrival& arrival : given.arrivals) walk.arrive(arrival);
  const std::int64_t peak = walk.finish();
  if (!stage_1 || !more) return peak;
  return std::max(peak, accumulation_peak(given.arrivals, given.config.accumulation_steps > 2));
}

Bytes partitioned_temporaries(const Given& given, const Flats& flats) {
  const StepConfig& config = given.config;
  std::int64_t slice = 0;
  for (std::size_t tensor = 0; tensor < flats.begin.size(); ++tensor) {
    slice = std::max(slice, flats.owned(tensor, given.numel(tensor), given.rank));
  }
  const bool late = config.stage == 1 && !config.overlap_comm;
  const Order order = late ? given.group_order() : given.arrival_order();
  const std::int64_t flatten = config.reduce_scatter ? largest_flatten(given, flats, order) : 0;
  const bool checks =
      config.dtype == DType::fp16 || (config.dtype == DType::bf16 && config.check_grad_overflow);
  return std::max({times(flatten, given.e), times(slice, checks ? 11 : 8),
                   given.update(flats.largest_partition)});
}

ModelStateMemory partitioned(const Given& given) {
  const Flats flats = lay_out(given);
  MemoryUse use;
  use.at(MemoryCategory::parameters) = times(given.ranks * flats.all_partitions, given.e);
  use.at(MemoryCategory::optimizer) =
      times(flats.all_partitions, 4 + given.state()) + given.unused_state();
  ModelStateMemory memory{use, use};

  ReductionWalk::Rules rules;
  rules.capacity = given.config.reduce_bucket_size;
  rules.owns = [&](std::size_t tensor) {
    return flats.owned(tensor, given.numel(tensor), given.rank) > 0;
  };
  for (std::size_t tensor = 0; tensor < flats.begin.size(); ++tensor) {
    if (rules.owns(tensor)) rules.partition += given.numel(tensor);
  }
  rules.keeps_unowned = given.config.stage == 1;
  const Bytes copies = given.config.overlap_comm ? 2 : 1;
  memory.peak.at(MemoryCategory::buckets) = times(rules.capacity, given.e) * copies;
  memory.peak.at(MemoryCategory::gradients) =
      times(partitioned_gradients(given, std::move(rules)), given.e);
  memory.peak.at(MemoryCategory::temporaries) = partitioned_temporaries(given, flats);
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
                given.update(largest_sub_group(given))});
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
  return config.stage == 3 ? sharded(given) : partitioned(given);
}

}  // namespace dstune
