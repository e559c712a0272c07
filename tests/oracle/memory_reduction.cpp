#include "tests/oracle/memory_reduction.hpp"

#include <map>
#include <utility>

namespace dstune::oracle {
namespace {

using Order = TensorOrder;

Order dealt(const Order& tensors, std::size_t hands) {
  Order order;
  for (std::size_t hand = 0; hand < hands; ++hand) {
    for (std::size_t i = hand; i < tensors.size(); i += hands) order.push_back(tensors[i]);
  }
  return order;
}

struct Slice {
  std::int64_t owner = 0;
  std::int64_t numel = 0;
};

bool is_summed(const GivenRank& given, std::int64_t owner) {
  return given.config.sums_in_partition() && owner == given.rank;
}

/// A bucket cut by owners: what lies side by side and has one owner is one slice, but for what is
/// added to sums of this rank.
std::vector<Slice> cut(const GivenRank& given, const Flats& flats, const Order& bucket) {
  std::vector<Slice> slices;
  for (const std::size_t tensor : bucket) {
    for (std::int64_t owner = 0; owner < given.ranks; ++owner) {
      const std::int64_t part = flats.owned(tensor, given.numel(tensor), owner);
      if (part == 0) continue;
      const bool is_apart = slices.empty() || slices.back().owner != owner;
      if (is_apart || is_summed(given, owner)) slices.push_back({owner, 0});
      slices.back().numel += part;
    }
  }
  return slices;
}

/// Of a message of `numel` elements that is made of `count` tensors or slices.
Bytes message_bytes(const GivenRank& given, std::int64_t numel, std::size_t count) {
  const DType type = bucket_type(given);
  return (count > 1 ? times(numel, size_of(type)) : 0) + given.message(numel, type);
}

/// Of a slice that is added to sums: a copy in fp32, unless it came in that type.
Bytes added_bytes(const GivenRank& given, const Slice& slice) {
  if (!is_summed(given, slice.owner) || given.config.message_dtype() == DType::fp32) return 0;
  return times(slice.numel, 4);
}

Bytes largest_added(const GivenRank& given, const std::vector<Slice>& slices) {
  Bytes largest = 0;
  for (const Slice& slice : slices) largest = std::max(largest, added_bytes(given, slice));
  return largest;
}

/// R: a call takes slices until they exceed K.
Bytes largest_run(const GivenRank& given, const std::vector<Slice>& slices) {
  Bytes largest = 0;
  std::int64_t fill = 0;
  std::vector<Slice> run;
  for (const Slice& slice : slices) {
    fill += slice.numel;
    run.push_back(slice);
    largest = std::max(largest, message_bytes(given, fill, run.size()) + largest_added(given, run));
    if (fill <= given.config.reduce_bucket_size) continue;
    fill = 0;
    run.clear();
  }
  return largest;
}

Bytes largest_part_of_an_owner(const GivenRank& given, const std::vector<Slice>& slices) {
  std::map<std::int64_t, std::pair<std::int64_t, std::size_t>> owners;  // elements, slices
  for (const Slice& slice : slices) {
    owners[slice.owner].first += slice.numel;
    ++owners[slice.owner].second;
  }
  Bytes largest = 0;
  for (const auto& [owner, part] : owners) {
    const Bytes added = owner == given.rank ? largest_added(given, slices) : 0;
    largest = std::max(largest, message_bytes(given, part.first, part.second) + added);
  }
  return largest;
}

}  // namespace

Flats lay_out(const GivenRank& given) {
  Flats flats;
  flats.begin.resize(given.parameters.tensors.size());
  flats.partition.resize(given.parameters.tensors.size());
  const bool deals = given.config.round_robin_gradients && !given.config.uses_bf16_optimizer();
  const auto hands = static_cast<std::size_t>(deals ? given.ranks : 1);
  for (const auto& group : given.groups) {
    std::int64_t length = 0;
    for (const std::size_t tensor : dealt(group.tensors, hands)) {
      flats.begin[tensor] = length;
      length += given.numel(tensor);
    }
    const std::int64_t partition = 2 * ceil_div(length, 2 * given.ranks);
    for (const std::size_t tensor : group.tensors) flats.partition[tensor] = partition;
    flats.partitions.push_back(partition);
    flats.all_partitions += partition;
  }
  return flats;
}

DType bucket_type(const GivenRank& given) {
  const bool has_sums = given.config.stage == 1 && given.config.sums_in_partition();
  return has_sums ? DType::fp32 : given.config.dtype;
}

Bytes largest_reduction(const GivenRank& given, const Flats& flats) {
  const StepConfig& config = given.config;
  const bool late = config.stage == 1 && !config.overlap_comm;
  const Order order = late ? given.group_order() : given.arrival_order();
  Bytes largest = 0;
  for (const auto& bucket : pack_buckets(order, given.parameters, config.reduce_bucket_size)) {
    std::int64_t fill = 0;
    for (const std::size_t tensor : bucket) fill += given.numel(tensor);
    Bytes bytes = 0;
    const Bytes added = largest_added(given, cut(given, flats, bucket));
    if (!config.contiguous_gradients) {
      bytes = message_bytes(given, fill, bucket.size()) + added;
    } else if (!config.reduce_scatter) {
      bytes = message_bytes(given, fill, 1) + added;
    } else if (config.use_multi_rank_bucket_allreduce) {
      bytes = largest_run(given, cut(given, flats, bucket));
    } else {
      bytes = largest_part_of_an_owner(given, cut(given, flats, bucket));
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace dstune::oracle
