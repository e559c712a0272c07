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
  if (other.held > held) *this = other;
  drive = most_on_drive;
}

void HostMemory::take(Tier tier, MemoryCategory category, Bytes size) {
  if (tier == Tier::nvme) {
    drive_ += size;
    peak_.drive = std::max(peak_.drive, drive_);
    return;
  }
  const bool is_pinned = tier == Tier::pinned;
  const Bytes wanted = is_pinned ? pinned_.needs(size) : size;
  if (wanted > limit_ || held() > limit_ - wanted) {
    throw OutOfMemoryError(category, wanted, held(), limit_, 0, "", tier);
  }
  if (is_pinned) pinned_.take(size);
  use_.at(tier) += size;
  peak_.held = std::max(peak_.held, held());
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
