#include "core/train/zero/layout/shard_layout.hpp"

#include <algorithm>

namespace dstune {

ShardLayout::ShardLayout(const std::vector<ParameterGroup>& groups,
                         const ModelParameters& parameters, int group_size,
                         std::int64_t sub_group_size)
    : offsets_(parameters.tensors.size()),
      shards_(parameters.tensors.size()),
      numels_(parameters.tensors.size()) {
  for (const ParameterGroup& group : groups) {
    bool open = false;
    for (const std::size_t tensor : group.tensors) {
      if (!open) sub_groups_.push_back({{}, group.weight_decay, numel_, 0});
      SubGroup& current = sub_groups_.back();
      numels_[tensor] = parameters.tensors[tensor].numel();
      shards_[tensor] = (numels_[tensor] + group_size - 1) / group_size;
      offsets_[tensor] = numel_;
      current.tensors.push_back(tensor);
      current.numel += shards_[tensor];
      numel_ += shards_[tensor];
      open = current.numel < sub_group_size;
    }
  }
}

std::int64_t ShardLayout::filled(std::size_t tensor, int rank) const {
  return std::clamp<std::int64_t>(numels_[tensor] - rank * shards_[tensor], 0, shards_[tensor]);
}

}  // namespace dstune
