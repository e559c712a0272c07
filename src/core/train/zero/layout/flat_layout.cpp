#include "core/train/zero/layout/flat_layout.hpp"

#include <algorithm>

namespace dstune {

FlatLayout::FlatLayout(const ParameterGroup& group, const ModelParameters& parameters,
                       int group_size, bool round_robin)
    : offsets_(parameters.tensors.size(), -1),
      numels_(parameters.tensors.size()),
      size_(group_size) {
  const auto hands = static_cast<std::size_t>(round_robin ? group_size : 1);
  for (std::size_t hand = 0; hand < hands; ++hand) {
    for (std::size_t i = hand; i < group.tensors.size(); i += hands) {
      order_.push_back(group.tensors[i]);
    }
  }
  for (const std::size_t tensor : order_) {
    offsets_[tensor] = numel_;
    numels_[tensor] = parameters.tensors[tensor].numel();
    numel_ += numels_[tensor];
  }
  const std::int64_t alignment = 2 * static_cast<std::int64_t>(group_size);
  partition_ = (numel_ + alignment - 1) / alignment * 2;
}

std::vector<OwnedRange> FlatLayout::owned_by(int rank) const {
  const std::int64_t begin = rank * partition_;
  const std::int64_t end = begin + partition_;
  std::vector<OwnedRange> ranges;
  for (const std::size_t tensor : order_) {
    const std::int64_t first = std::max(begin, offsets_[tensor]);
    const std::int64_t last = std::min(end, offsets_[tensor] + numels_[tensor]);
    if (first < last)
      ranges.push_back({tensor, first - offsets_[tensor], first - begin, last - first});
  }
  return ranges;
}

std::vector<FlatLayout::Piece> FlatLayout::pieces(std::size_t tensor) const {
  std::vector<Piece> result;
  const std::int64_t end = offsets_[tensor] + numels_[tensor];
  for (std::int64_t first = offsets_[tensor]; first < end;) {
    const std::int64_t owner = first / partition_;
    const std::int64_t last = std::min(end, (owner + 1) * partition_);
    const std::int64_t owners =
        first == owner * partition_ ? std::max<std::int64_t>(1, (end - first) / partition_) : 1;
    result.push_back({static_cast<int>(owner), last - first, static_cast<int>(owners)});
    first += owners * (last - first);
  }
  return result;
}

FlatLayouts::FlatLayouts(const std::vector<ParameterGroup>& groups,
                         const ModelParameters& parameters, int group_size, bool round_robin)
    : group_of_(parameters.tensors.size()) {
  for (const ParameterGroup& group : groups) {
    for (const std::size_t tensor : group.tensors) group_of_[tensor] = layouts_.size();
    layouts_.emplace_back(group, parameters, group_size, round_robin);
  }
}

}  // namespace dstune
