#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/oracle/memory_given.hpp"
#include "tests/oracle/memory_reduction.hpp"

namespace dstune::oracle {
namespace {

Bytes temporaries(const GivenRank& given, const Flats& flats) {
  const StepConfig& config = given.config;
  std::int64_t slice = 0;
  for (std::size_t tensor = 0; tensor < flats.begin.size(); ++tensor) {
    slice = std::max(slice, flats.owned(tensor, given.numel(tensor), given.rank));
  }
  const DType sum = config.stage == 1 ? config.accumulation_dtype() : config.dtype;
  const Bytes update = config.sums_in_partition()
                           ? times(flats.largest_partition(), given.scratch())
                           : given.update(flats.largest_partition(), sum);
  return std::max({largest_reduction(given, flats), times(slice, 8), update});
}

/// A micro-step that only adds to sums of `sum` bytes, which are all there if they are held.
Bytes accumulation_beside_sums(const GivenRank& given, Bytes sum, bool held) {
  Bytes peak = 0;
  std::int64_t sums = held ? given.parameters.total() : 0;
  for (const Arrival& arrival : given.arrivals) {
    peak = std::max(
        {peak, times(sums, sum) + times(arrival.numel + arrival.parts, given.e),
         times(sums + arrival.numel, sum) + times(arrival.numel + arrival.others, given.e)});
    if (!held) sums += arrival.numel;
  }
  return peak;
}

/// Stage 1 with sums in another type than the gradients'.
Bytes gradients_beside_sums(const GivenRank& given, ReductionWalk::Rules rules) {
  const Bytes sum = size_of(given.config.accumulation_dtype());
  rules.sum = static_cast<std::int64_t>(sum);
  rules.accumulated = given.accumulates();
  const auto all = static_cast<std::int64_t>(times(given.parameters.total(), sum));
  if (given.config.overlap_comm) {
    ReductionWalk walk(std::move(rules), given.accumulates() ? all : 0);
    for (const Arrival& arrival : given.arrivals) walk.arrive(arrival);
    const auto peak = static_cast<Bytes>(walk.finish());
    if (!given.accumulates()) return peak;
    const bool held = given.config.accumulation_steps > 2;
    return std::max(peak, accumulation_beside_sums(given, sum, held));
  }
  const Bytes peak = accumulation_beside_sums(given, sum, given.accumulates());
  ReductionWalk walk(std::move(rules), all);
  for (const std::size_t tensor : given.group_order()) walk.reduce(tensor, given.numel(tensor), 0);
  return std::max(peak, static_cast<Bytes>(walk.finish()));
}

Bytes gradients(const GivenRank& given, ReductionWalk::Rules rules) {
  const StepConfig& config = given.config;
  const bool more = given.accumulates();
  const bool stage_1 = config.stage == 1;
  const std::int64_t total = given.parameters.total();
  if (stage_1 && config.accumulation_dtype() != config.dtype) {
    return gradients_beside_sums(given, std::move(rules));
  }
  const auto accumulated = [&](bool held) {
    return times(accumulation_peak(given.arrivals, held), given.e);
  };
  if (stage_1 && !config.contiguous_gradients) return accumulated(more);
  if (stage_1 && !config.overlap_comm) {
    ReductionWalk walk(std::move(rules), static_cast<std::int64_t>(times(total, given.e)));
    for (const std::size_t tensor : given.group_order()) {
      walk.reduce(tensor, given.numel(tensor), 0);
    }
    return std::max(static_cast<Bytes>(walk.finish()), accumulated(more));
  }
  rules.accumulated = stage_1 && more;
  if (config.sums_in_partition() && more) {
    // The buffers of earlier micro-steps.
    std::int64_t sums = 0;
    for (const std::size_t tensor : given.group_order()) {
      if (rules.owns(tensor)) sums += std::exchange(rules.group_sums[rules.group_of(tensor)], 0);
    }
    ReductionWalk walk(std::move(rules), sums);
    for (const Arrival& arrival : given.arrivals) walk.arrive(arrival);
    return static_cast<Bytes>(walk.finish());
  }
  const std::int64_t sum = stage_1 ? total : rules.partition;
  ReductionWalk walk(std::move(rules), more ? static_cast<std::int64_t>(times(sum, given.e)) : 0);
  for (const Arrival& arrival : given.arrivals) walk.arrive(arrival);
  const auto peak = static_cast<Bytes>(walk.finish());
  if (!stage_1 || !more) return peak;
  return std::max(peak, accumulated(config.accumulation_steps > 2));
}

ReductionWalk::Rules rules_of(const GivenRank& given, const Flats& flats) {
  ReductionWalk::Rules rules;
  rules.capacity = given.config.reduce_bucket_size;
  rules.owns = [&](std::size_t tensor) {
    return flats.owned(tensor, given.numel(tensor), given.rank) > 0;
  };
  for (std::size_t tensor = 0; tensor < flats.begin.size(); ++tensor) {
    if (rules.owns(tensor)) rules.partition += given.numel(tensor);
  }
  const bool has_own_sums =
      given.config.accumulation_dtype() != given.config.dtype && !given.config.sums_in_partition();
  rules.keeps_unowned = given.config.stage == 1 && !has_own_sums;
  if (given.config.sums_in_partition()) {
    rules.partition = 0;
    rules.sums_in_bucket = given.config.stage == 1;
    for (const std::int64_t partition : flats.partitions) rules.group_sums.push_back(4 * partition);
    rules.group_of = [&](std::size_t tensor) { return given.group_of(tensor); };
  }
  rules.list = !given.config.contiguous_gradients;
  rules.waits = given.config.overlap_comm;
  rules.each = static_cast<std::int64_t>(given.e);
  return rules;
}

MemoryUse partitioned_states(const GivenRank& given, const Flats& flats) {
  MemoryUse use;
  use.at(MemoryCategory::parameters) = times(given.ranks * flats.all_partitions, given.e);
  use.at(MemoryCategory::optimizer) =
      times(flats.all_partitions, 4 + given.state()) + given.unused_state();
  return use;
}

}  // namespace

ModelStateMemory predict_partitioned(const GivenRank& given) {
  const Flats flats = lay_out(given);
  const MemoryUse use = partitioned_states(given, flats);
  ModelStateMemory memory{use, use};
  if (given.config.contiguous_gradients) {
    const Bytes copies = given.config.overlap_comm ? 2 : 1;
    memory.peak.at(MemoryCategory::buckets) =
        times(given.config.reduce_bucket_size, size_of(bucket_type(given))) * copies;
  }
  memory.peak.at(MemoryCategory::gradients) = gradients(given, rules_of(given, flats));
  memory.peak.at(MemoryCategory::temporaries) = temporaries(given, flats);
  return memory;
}

ModelStateMemory predict_bf16_optimizer(const GivenRank& given) {
  const Flats flats = lay_out(given);
  MemoryUse use = partitioned_states(given, flats);
  use.at(MemoryCategory::gradients) = times(given.ranks * flats.all_partitions, 4);
  ModelStateMemory memory{use, use};
  memory.peak.at(MemoryCategory::gradients) +=
      times(accumulation_peak(given.arrivals, given.accumulates()), given.e);
  std::vector<std::int64_t> sizes;
  for (const std::int64_t partition : flats.partitions) sizes.push_back(given.ranks * partition);
  std::int64_t largest = 0;
  for (const auto& tensor : given.parameters.tensors) largest = std::max(largest, tensor.numel());
  memory.peak.at(MemoryCategory::temporaries) =
      std::max({times(largest, 4), largest_replicated_average(given, sizes, DType::fp32),
                times(flats.largest_partition(), given.scratch())});
  return memory;
}

}  // namespace dstune::oracle
