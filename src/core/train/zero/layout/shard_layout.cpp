#include "core/train/zero/layout/shard_layout.hpp"

#include <algorithm>

namespace dstune {

ShardLayout::ShardLayout(const std::vector<ParameterGroup>& groups,
                         const ModelParameters& parameters, int group_size,
                         std::int64_t sub_group_size)
    : offsets_(parameters.tensors.size()),
      shards_(parameters.tensors.size()),
      numels_(parameters.tensors.size()) {
  const auto add = [&](std::size_t tensor) {
    numels_[tensor] = parameters.tensors[tensor].numel();
    shards_[tensor] = (numels_[tensor] + group_size - 1) / group_size;
    offsets_[tensor] = held_;
    held_ += shards_[tensor];
  };
  for (const ParameterGroup& group : groups) {
    bool open = false;
    for (const std::size_t tensor : group.tensors) {
      if (!open) sub_groups_.push_back({{}, group.weight_decay, held_, 0});
      SubGroup& current = sub_groups_.back();
      add(tensor);
      current.tensors.push_back(tensor);
      current.numel += shards_[tensor];
      open = current.numel < sub_group_size;
    }
  }
  numel_ = held_;
  for (std::size_t tensor = 0; tensor < parameters.tensors.size(); ++tensor) {
    if (!parameters.tensors[tensor].trainable) add(tensor);
  }
}

std::int64_t ShardLayout::largest_sub_group() const noexcept {
  std::int64_t largest = 0;
  for (const SubGroup& group : sub_groups_) largest = std::max(largest, group.numel);
  return largest;
}

std::int64_t ShardLayout::filled(std::size_t tensor, int rank) const {
  return std::clamp<std::int64_t>(numels_[tensor] - rank * shards_[tensor], 0, shards_[tensor]);
}

}  // namespace dstune
