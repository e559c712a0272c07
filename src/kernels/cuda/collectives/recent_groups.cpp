#include "kernels/cuda/collectives/recent_groups.hpp"

#include <algorithm>

namespace dstune::cuda {

RecentGroups::Groups::iterator RecentGroups::find(const Members& members) {
  return std::find_if(groups_.begin(), groups_.end(),
                      [&](const Group& group) { return group.members == members; });
}

void RecentGroups::use(const Members& members) {
  const auto found = find(members);
  if (found == groups_.end()) {
    groups_.push_back({members});
  } else {
    groups_.splice(groups_.end(), groups_, found);
  }
}

void RecentGroups::add_bytes(const Members& members, Bytes bytes) {
  const auto found = find(members);
  if (found == groups_.end()) return;
  found->bytes += bytes;
  largest_ = std::max(largest_, found->bytes);
}

void RecentGroups::drop(const Members& members) {
  const auto found = find(members);
  if (found != groups_.end()) groups_.erase(found);
}

std::vector<RecentGroups::Members> RecentGroups::to_drop_for_one_more() const {
  return beyond(most_ - 1, reserve_ - std::min(reserve_, largest_));
}

std::vector<RecentGroups::Members> RecentGroups::to_drop() const {
  auto dropped = beyond(most_, reserve_);
  if (dropped.size() == groups_.size() && !dropped.empty()) dropped.pop_back();
  return dropped;
}

std::vector<RecentGroups::Members> RecentGroups::beyond(std::size_t most, Bytes reserve) const {
  std::vector<Members> dropped;
  std::size_t count = groups_.size();
  Bytes in_use = bytes();
  for (const Group& group : groups_) {
    if (count <= most && in_use <= reserve) break;
    dropped.push_back(group.members);
    --count;
    in_use -= group.bytes;
  }
  return dropped;
}

Bytes RecentGroups::bytes() const {
  Bytes sum = 0;
  for (const Group& group : groups_) sum += group.bytes;
  return sum;
}

}  // namespace dstune::cuda
