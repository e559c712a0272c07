#include "core/device/memory/caching_model.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dstune {

namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kMinBlockSize = 512;
constexpr Bytes kSmallSize = kMiB;
constexpr Bytes kSmallBuffer = CachingModel::kSegmentUnit;
constexpr Bytes kLargeBuffer = 20 * kMiB;
constexpr Bytes kMinLargeAlloc = 10 * kMiB;
constexpr Bytes kRoundLarge = CachingModel::kSegmentUnit;
static_assert(kLargeBuffer % CachingModel::kSegmentUnit == 0);

Bytes round_up(Bytes size, Bytes unit) { return (size + unit - 1) / unit * unit; }

Bytes round_size(Bytes size) { return round_up(size, kMinBlockSize); }

bool is_small(Bytes rounded) { return rounded <= kSmallSize; }

std::size_t list_of(Bytes rounded, Stream stream) {
  return (is_small(rounded) ? 0 : kStreams) + static_cast<std::size_t>(stream);
}

bool should_split(std::size_t list, Bytes rest) {
  return list < kStreams ? rest >= kMinBlockSize : rest > kSmallSize;
}

bool comes_before(const CachingModel::Free& a, const CachingModel::Free& b) {
  return std::tie(a.size, a.address) < std::tie(b.size, b.address);
}

}  // namespace

Bytes CachingModel::segment_size(Bytes size) noexcept {
  if (size == 0) return 0;
  const Bytes rounded = round_size(size);
  if (is_small(rounded)) return kSmallBuffer;
  return rounded < kMinLargeAlloc ? kLargeBuffer : round_up(rounded, kRoundLarge);
}

bool CachingModel::has_room(Bytes size, Stream stream) const noexcept {
  if (size == 0) return true;
  const Bytes rounded = round_size(size);
  const std::vector<Free>& list = free_[list_of(rounded, stream)];
  if (!list.empty() && list.back().size >= rounded) return true;
  return segment_size(size) <= limit_ - reserved_;
}

std::optional<CachingModel::Block> CachingModel::take(Bytes size, Stream stream) {
  if (size == 0) return kNoBlock;
  const Bytes rounded = round_size(size);
  const std::vector<Free>& list = free_[list_of(rounded, stream)];
  const auto found = std::lower_bound(list.begin(), list.end(), Free{rounded, 0}, comes_before);
  if (found == list.end()) return take_segment(size, stream);
  const Block block = found->block;
  remove(block);
  return split(block, rounded);
}

std::optional<CachingModel::Block> CachingModel::take_segment(Bytes size, Stream stream) {
  if (size == 0) return kNoBlock;
  const Bytes segment = segment_size(size);
  refusal_.clear();
  if (segment > limit_ - reserved_) return std::nullopt;
  const auto data = make_memory(segment);
  if (!data) return std::nullopt;
  const Bytes rounded = round_size(size);
  const Block block = make_node(
      {segment, next_address_, kNoBlock, kNoBlock, list_of(rounded, stream), false, *data});
  reserved_ += segment;
  next_address_ += segment;
  return split(block, rounded);
}

std::optional<std::byte*> CachingModel::make_memory(Bytes segment) {
  if (source_ == nullptr) return nullptr;
  SegmentSource::Segment made = source_->make(segment);
  refusal_ = std::move(made.refusal);
  if (made.data == nullptr) return std::nullopt;
  return static_cast<std::byte*>(made.data);
}

// The front part is used, and the rest is free.
CachingModel::Block CachingModel::split(Block block, Bytes size) {
  const Node node = at(block);
  if (!should_split(node.list, node.size - size)) return block;
  const Block rest =
      make_node({node.size - size, node.address + size, block, node.behind, node.list, false,
                 node.data == nullptr ? nullptr : node.data + size});
  if (node.behind != kNoBlock) at(node.behind).before = rest;
  at(block).behind = rest;
  at(block).size = size;
  insert(rest);
  return block;
}

void CachingModel::give_back(Block block) noexcept {
  if (block == kNoBlock) return;
  for (const Block neighbour : {at(block).before, at(block).behind}) {
    if (neighbour != kNoBlock && at(neighbour).is_free) unite(block, neighbour);
  }
  insert(block);
}

void CachingModel::unite(Block block, Block neighbour) {
  remove(neighbour);
  Node& node = at(block);
  const Node& other = at(neighbour);
  node.size += other.size;
  if (node.before == neighbour) {
    node.address = other.address;
    node.data = other.data;
    node.before = other.before;
    if (node.before != kNoBlock) at(node.before).behind = block;
  } else {
    node.behind = other.behind;
    if (node.behind != kNoBlock) at(node.behind).before = block;
  }
  unused_nodes_.push_back(neighbour);
}

void CachingModel::release_cached() noexcept {
  for (std::vector<Free>& list : free_) {
    std::erase_if(list, [this](const Free& free) {
      const Node& node = at(free.block);
      if (node.before != kNoBlock || node.behind != kNoBlock) return false;
      reserved_ -= node.size;
      if (source_ != nullptr) source_->give_back(node.data, node.size);
      unused_nodes_.push_back(free.block);
      return true;
    });
  }
}

bool CachingModel::holds_unused_segments() const noexcept {
  return std::any_of(free_.begin(), free_.end(), [this](const std::vector<Free>& list) {
    return std::any_of(list.begin(), list.end(), [this](const Free& free) {
      return at(free.block).before == kNoBlock && at(free.block).behind == kNoBlock;
    });
  });
}

CachingModel::Block CachingModel::make_node(const Node& node) {
  if (unused_nodes_.empty()) {
    nodes_.push_back(node);
    return static_cast<Block>(nodes_.size() - 1);
  }
  const Block block = unused_nodes_.back();
  unused_nodes_.pop_back();
  at(block) = node;
  return block;
}

void CachingModel::insert(Block block) {
  Node& node = at(block);
  node.is_free = true;
  std::vector<Free>& list = free_[node.list];
  const Free free{node.size, node.address, block};
  list.insert(std::lower_bound(list.begin(), list.end(), free, comes_before), free);
}

void CachingModel::remove(Block block) {
  Node& node = at(block);
  node.is_free = false;
  std::vector<Free>& list = free_[node.list];
  const Free free{node.size, node.address, block};
  list.erase(std::lower_bound(list.begin(), list.end(), free, comes_before));
}

}  // namespace dstune
