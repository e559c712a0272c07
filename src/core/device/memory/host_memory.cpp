#include "core/device/memory/host_memory.hpp"

#include <bit>

namespace dstune {

Bytes PinnedModel::block_size(Bytes size) noexcept { return std::bit_ceil(size); }

Bytes PinnedModel::needs(Bytes size) const {
  const Bytes block = block_size(size);
  const auto cached = cached_.find(block);
  return cached == cached_.end() || cached->second == 0 ? block : 0;
}

void PinnedModel::take(Bytes size) {
  const auto cached = cached_.try_emplace(block_size(size), 0).first;
  held_ += needs(size);
  if (cached->second > 0) --cached->second;
}

// Its size was taken before, so that it has its place and nothing need be allocated.
void PinnedModel::give_back(Bytes size) noexcept { ++cached_.find(block_size(size))->second; }

void PeakHostMemory::merge(const PeakHostMemory& other) noexcept {
  const Bytes most_on_drive = std::max(drive, other.drive);
  const Bytes most_pinned = std::max(pinned, other.pinned);
  if (other.held > held) *this = other;
  drive = most_on_drive;
  pinned = most_pinned;
}

namespace {

/// A request of a tier, and what of a limit is in use already.
struct Request {
  Tier tier;
  MemoryCategory category;
  Bytes size;

  void check(Bytes in_use, Bytes limit) const {
    if (size <= limit && in_use <= limit - size) return;
    throw OutOfMemoryError(category, size, in_use, limit, 0, "", tier);
  }
};

}  // namespace

void HostMemory::take(Tier tier, MemoryCategory category, Bytes size) {
  if (tier == Tier::nvme) {
    Request{tier, category, size}.check(drive_, limits_.drive);
    drive_ += size;
    peak_.drive = std::max(peak_.drive, drive_);
    return;
  }
  const bool is_pinned = tier == Tier::pinned;
  const Request request{tier, category, is_pinned ? pinned_.needs(size) : size};
  request.check(held(), limits_.held);
  if (tier != Tier::pageable) request.check(pinned(), limits_.pinned);
  if (is_pinned) pinned_.take(size);
  use_.at(tier) += size;
  peak_.held = std::max(peak_.held, held());
  peak_.pinned = std::max(peak_.pinned, pinned());
  if (use_.total() > peak_.at_peak.total()) peak_.at_peak = use_;
}

void HostMemory::give_back(Tier tier, Bytes size) noexcept {
  if (tier == Tier::nvme) {
    drive_ -= size;
    return;
  }
  if (tier == Tier::pinned) pinned_.give_back(size);
  use_.at(tier) -= size;
}

void HostMemory::begin_anew() noexcept {
  pinned_ = {};
  peak_ = {};
}

}  // namespace dstune
