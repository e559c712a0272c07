// Counts and limits the bytes that one rank's tensors have in its host's memory and on its drive.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/base/units.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/device/memory/tier.hpp"

namespace dstune {

/// Pinned memory as PyTorch's allocator holds it (ATen/core/CachingHostAllocator.h of torch 2.15,
/// with its defaults): a request is rounded up to a power of two, and gets a block of exactly that
/// size that was given back before, or a new one. Nothing is ever given back to the system.
class PinnedModel {
 public:
  /// The block that holds a request of `size` bytes.
  static Bytes block_size(Bytes size) noexcept;

  /// The bytes that a request takes of the system: none where a block waits for it.
  Bytes needs(Bytes size) const;
  void take(Bytes size);
  /// @param size  as it was taken
  void give_back(Bytes size) noexcept;

  Bytes held() const noexcept { return held_; }  ///< in use and cached

 private:
  std::map<Bytes, std::uint64_t> cached_;  ///< blocks by size
  Bytes held_ = 0;
};

/// Bytes of the host's memory that were asked for.
struct HostUse {
  Bytes pinned = 0;
  Bytes pageable = 0;
  Bytes locked = 0;

  /// @param tier  is_of_host()
  Bytes& at(Tier tier) {
    if (tier == Tier::locked) return locked;
    return tier == Tier::pinned ? pinned : pageable;
  }
  Bytes total() const { return pinned + pageable + locked; }
  bool operator==(const HostUse&) const = default;
};

/// The highest uses since construction or begin_anew().
struct PeakHostMemory {
  HostUse at_peak;  ///< the uses of the first moment with the largest sum of all
  /// The largest sum of what is pageable or locked and of the blocks of pinned memory
  /// (PinnedModel): what the system must give.
  Bytes held = 0;
  Bytes drive = 0;  ///< the most that the files on a drive have had
  /// The largest sum of the blocks of pinned memory and of what is locked: what the system must
  /// not move.
  Bytes pinned = 0;

  /// For two ranks: the memory of the one that holds more, this one if both hold the same, with the
  /// larger of what both have on a drive and of what they pin.
  void merge(const PeakHostMemory& other) noexcept;
  bool operator==(const PeakHostMemory&) const = default;
};

/// What the tensors of one rank may have outside its device, each as in PeakHostMemory.
struct HostLimits {
  Bytes held = kNoLimit;
  Bytes pinned = kNoLimit;
  Bytes drive = kNoLimit;  ///< beside what the drive itself has
};

class HostMemory {
 public:
  /// Nothing is limited before limit_to().
  void limit_to(const HostLimits& limits) noexcept { limits_ = limits; }
  /// Bytes that may be held; see PeakHostMemory::held.
  Bytes limit() const noexcept { return limits_.held; }

  /// @param tier  of the host, or nvme
  /// @throws OutOfMemoryError  if a limit has no room, with that limit; then nothing changed
  void take(Tier tier, MemoryCategory category, Bytes size);
  void give_back(Tier tier, Bytes size) noexcept;
  /// Forgets the peak and the cache. Nothing may be in use.
  void begin_anew() noexcept;

  const HostUse& use() const noexcept { return use_; }
  Bytes held() const noexcept { return pinned_.held() + use_.pageable + use_.locked; }
  /// What is pinned, as it is held, or locked.
  Bytes pinned() const noexcept { return pinned_.held() + use_.locked; }
  Bytes on_drive() const noexcept { return drive_; }
  const PeakHostMemory& peak() const noexcept { return peak_; }

 private:
  HostLimits limits_;
  Bytes drive_ = 0;
  PinnedModel pinned_;
  HostUse use_;
  PeakHostMemory peak_;
};

}  // namespace dstune
