#include "core/train/zero/layout/shard_groups.hpp"

#include <algorithm>

namespace dstune {
namespace {

std::vector<int> every(int step, int first, int count) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * step);
  return ranks;
}

}  // namespace

ShardSizes shard_sizes(const StepConfig& config, int ranks) {
  if (config.stage < 3) return {ranks, 1, 1};
  const int shards = config.mics_shard_size > 0 ? config.mics_shard_size : ranks;
  return {shards, ranks / shards, std::min(config.hpz_partition_size, ranks)};
}

std::vector<std::string> unsupported_shard_sizes(const StepConfig& config, int ranks) {
  if (config.stage < 3) return {};
  std::vector<std::string> reasons;
  if (config.mics_shard_size > 0 && ranks % config.mics_shard_size != 0) {
    reasons.emplace_back("zero_optimization.mics_shard_size that does not divide the ranks");
  }
  if (ranks % std::min(config.hpz_partition_size, ranks) != 0) {
    reasons.emplace_back(
        "zero_optimization.zero_hpz_partition_size that does not divide the ranks");
  }
  return reasons;
}

ShardGroups::ShardGroups(const StepConfig& config, Collectives& all) : all_(&all) {
  const ShardSizes sizes = shard_sizes(config, all.size());
  const int place = all.rank() % sizes.shards;
  if (sizes.replicas > 1) {
    shards_ = all.sub_group(every(1, all.rank() - place, sizes.shards));
    replicas_ = all.sub_group(every(sizes.shards, place, sizes.replicas));
  }
  if (sizes.secondary > 1) {
    const int first = all.rank() / sizes.secondary * sizes.secondary;
    secondary_ = all.sub_group(every(1, first, sizes.secondary));
  }
}

}  // namespace dstune
