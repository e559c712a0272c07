#include "kernels/cuda/device/arena.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace dstune::cuda {

namespace {

Bytes rounded_up(Bytes size) {
  const Bytes whole = std::max(size, Bytes{1});  // distinct places, as malloc's
  return (whole + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

bool is_free_for(const StreamSet& users, Stream stream) {
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (users[i] && i != static_cast<std::size_t>(stream)) return false;
  }
  return true;
}

StreamSet joined(StreamSet a, const StreamSet& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::logical_or<>());
  return a;
}

}  // namespace

Arena::Arena(Bytes size) : size_(size / kAlignment * kAlignment) {
  if (size_ > 0) add_gap(0, {size_, {}});
}

std::optional<Arena::Place> Arena::take(Bytes size, Stream stream) {
  if (size > size_) return std::nullopt;
  const Bytes length = rounded_up(size);
  const auto found = best_gap(length, stream);
  if (found == gaps_.end()) return std::nullopt;
  const Bytes offset = found->first;
  const Gap gap = found->second;
  erase_gap(found);
  if (gap.size > length) add_gap(offset + length, {gap.size - length, gap.users});
  taken_[offset] = {length, stream};
  in_use_ += length;
  Place place{offset, gap.users};
  place.wait_for[static_cast<std::size_t>(stream)] = false;
  return place;
}

Arena::Gaps::iterator Arena::best_gap(Bytes size, Stream stream) {
  const auto smallest = by_size_.lower_bound({size, 0});
  if (smallest == by_size_.end()) return gaps_.end();
  const auto own = std::find_if(smallest, by_size_.end(), [&](const auto& gap) {
    return is_free_for(gaps_.at(gap.second).users, stream);
  });
  return gaps_.find(own != by_size_.end() ? own->second : smallest->second);
}

void Arena::give_back(Bytes offset, const StreamSet& users) noexcept {
  const auto taken = taken_.find(offset);
  Gap gap{taken->second.size, users};
  gap.users[static_cast<std::size_t>(taken->second.stream)] = true;
  in_use_ -= gap.size;
  taken_.erase(taken);

  const auto after = gaps_.find(offset + gap.size);
  if (after != gaps_.end()) {
    gap = {gap.size + after->second.size, joined(gap.users, after->second.users)};
    erase_gap(after);
  }
  auto before = gaps_.lower_bound(offset);
  if (before != gaps_.begin() && (--before)->first + before->second.size == offset) {
    offset = before->first;
    gap = {gap.size + before->second.size, joined(gap.users, before->second.users)};
    erase_gap(before);
  }
  add_gap(offset, gap);
}

void Arena::forget_streams() noexcept {
  for (auto& [offset, gap] : gaps_) gap.users = {};
}

void Arena::add_gap(Bytes offset, const Gap& gap) {
  gaps_.emplace(offset, gap);
  by_size_.emplace(gap.size, offset);
}

void Arena::erase_gap(Gaps::iterator gap) {
  by_size_.erase({gap->second.size, gap->first});
  gaps_.erase(gap);
}

}  // namespace dstune::cuda
