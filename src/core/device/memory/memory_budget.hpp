// Counts and limits the bytes one rank has allocated on its device, per category.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "core/device/memory/caching_model.hpp"
#include "core/device/memory/tier.hpp"
#include "core/device/stream.hpp"

namespace dstune {

std::string_view name_of(AllocatorModel allocator);  ///< "exact", "caching"
std::optional<AllocatorModel> allocator_from(std::string_view name);

enum class MemoryCategory { parameters, gradients, optimizer, buckets, activations, temporaries };

constexpr std::size_t kMemoryCategories = 6;

std::string_view name_of(MemoryCategory category);

/// Bytes per category; index with at().
struct MemoryUse {
  std::array<Bytes, kMemoryCategories> bytes{};

  Bytes& at(MemoryCategory category) { return bytes[static_cast<std::size_t>(category)]; }
  Bytes at(MemoryCategory category) const { return bytes[static_cast<std::size_t>(category)]; }
  Bytes total() const;
  bool operator==(const MemoryUse&) const = default;
};

/// The part of an optimizer step in which something happens.
enum class StepPhase {
  setup,       ///< before the first step; also what that left
  forward,     ///< with the gathers of stage 3
  backward,    ///< with the gathers of stage 3
  reduction,   ///< reductions of gradients, during backward or after it
  update,      ///< overflow check, norm, optimizer
  parameters,  ///< gathers after the update
};

constexpr std::size_t kStepPhases = 6;

std::string_view name_of(StepPhase phase);

/// The highest uses since construction or reset_peak(), each at the first moment that reached it,
/// in the three words of torch.cuda.memory_stats() (c10/cuda/CUDACachingAllocator.cpp).
///
/// *Allocated* is what the host has taken and not given back: it depends on the order of the host's
/// calls alone, so that a plan and a run have the same. *Active* is that and what is in flight:
/// memory which the host has given back while another stream may still use it. *Reserved* are the
/// segments that hold both. Memory in flight costs a wait at most: where a segment cannot be had,
/// release_cached_blocks() first waits for its events, so that what is allocated decides on out of
/// memory, with the segments in which it lies.
struct PeakMemory {
  Bytes allocated = 0;  ///< largest sum of all categories at one moment
  StepPhase phase = StepPhase::setup;
  MemoryUse at_peak;     ///< the uses of which that sum consisted
  MemoryUse categories;  ///< largest use of each category, each at its own moment
  std::array<StepPhase, kMemoryCategories> phases{};  ///< the phases of those moments
  /// The largest sum of what is allocated and in flight. A dry run, which has no clock, counts what
  /// is in flight until the host has waited for its end: it is never more.
  Bytes active = 0;
  /// The largest sum of the allocator's segments if it is AllocatorModel::caching; 0 if it is
  /// exact. In a dry run nothing that is in flight keeps a segment.
  Bytes reserved = 0;

  /// The bytes that the limit applies to.
  Bytes counted() const { return std::max(allocated, reserved); }
  /// How much more than what is allocated was active at the two peaks.
  Bytes in_flight() const { return active - std::min(active, allocated); }

  bool operator==(const PeakMemory&) const = default;
};

/// Above every limit, and far enough from the end of the range for sums.
constexpr Bytes kNoLimit = Bytes{1} << 62U;
/// A limit of a device above that of any, and far enough from the end of the range for sums.
constexpr Bytes kUnlimited = Bytes{1} << 60U;

/// A request did not fit. It is caught only in run_experiment, where it becomes an Outcome.
class OutOfMemoryError : public Error {
 public:
  /// @param refusal  why the system refused the memory, although the limit is not reached
  OutOfMemoryError(MemoryCategory category, Bytes requested, Bytes in_use, Bytes limit,
                   Bytes reserved = 0, std::string refusal = "", Tier tier = Tier::device);

  Tier tier;
  MemoryCategory category;
  Bytes requested;  ///< bytes asked for; where the limit is on segments, those of the new one
  Bytes in_use;     ///< bytes allocated at that moment
  Bytes limit;      ///< the budget
  Bytes reserved;   ///< where the limit is on segments: the sum of their bytes; else 0
  std::string refusal;
};

/// Sizes count exactly as they are asked for, without rounding or slack. The limit is on the sum of
/// those that are active or, with a caching allocator, on the segments that hold them.
class MemoryBudget {
 public:
  explicit MemoryBudget(Bytes limit) : limit_(limit) {}

  /// From the next count_as() on the segments of a caching allocator lie in memory of `source`.
  /// @param source  must outlive this
  void take_segments_from(SegmentSource* source) noexcept { source_ = source; }
  /// From now on counts as `allocator` does. Nothing may be in use, nor may streams still use what
  /// was.
  void count_as(AllocatorModel allocator);

  /// The block that must be given to release().
  using Block = CachingModel::Block;
  /// @returns none  if there is no room for `size` more bytes without giving the cache back, or the
  ///          source of segments has none; then nothing changed
  /// @throws what SegmentSource::make() does; then nothing changed
  std::optional<Block> try_reserve(MemoryCategory category, Bytes size,
                                   Stream stream = Stream::compute);
  /// @throws OutOfMemoryError  if `size` more bytes would exceed the limit, or the source of
  ///         segments has none; then nothing changed but the cache, which is given back
  Block reserve(MemoryCategory category, Bytes size, Stream stream = Stream::compute);
  /// Called where try_reserve() has found nothing and everything that could be waited for is over:
  /// gives the cache back first, then reserves.
  Block reserve_at_last(MemoryCategory category, Bytes size, Stream stream = Stream::compute);
  void release(MemoryCategory category, Bytes size, Block block = CachingModel::kNoBlock) noexcept;
  /// Counts bytes that were just released as in flight, until end_flight().
  void begin_flight(Bytes size) noexcept { in_flight_ += size; }
  /// @param block  what release() did not name, since it was not free yet
  void end_flight(Bytes size, Block block = CachingModel::kNoBlock) noexcept;

  /// The memory of a block; null if the device has to find it, since segments are an account.
  void* data(Block block) const noexcept { return cache_ ? cache_->data(block) : nullptr; }
  /// True if buffers lie in the segments that are counted.
  bool holds_segments() const noexcept { return cache_ && cache_->has_source(); }

  /// True if the limit has room.
  bool has_room(Bytes size, Stream stream = Stream::compute) const noexcept;
  /// Gives unused segments back, as torch.cuda.empty_cache().
  void release_cached() noexcept;
  /// True if release_cached() would do something: PyTorch waits for the device then.
  bool holds_unused_segments() const noexcept { return cache_ && cache_->holds_unused_segments(); }
  /// The cached blocks and their places; empty if nothing is ever cached.
  CachingModel::FreeLists free_lists() const;

  Bytes limit() const noexcept { return limit_; }
  Bytes in_use() const noexcept { return allocated_ + in_flight_; }  ///< what is active
  Bytes in_flight() const noexcept { return in_flight_; }
  Bytes reserved() const noexcept { return cache_ ? cache_->reserved() : 0; }
  const MemoryUse& use() const noexcept { return in_use_; }
  const PeakMemory& peak() const noexcept { return peak_; }
  void reset_peak() noexcept;

  /// Says that everything that follows belongs to `phase`.
  /// @returns the phase until now
  StepPhase enter(StepPhase phase) noexcept { return std::exchange(phase_, phase); }

 private:
  [[noreturn]] void refuse(MemoryCategory category, Bytes size) const;
  void count(MemoryCategory category, Bytes size) noexcept;

  Bytes limit_;
  SegmentSource* source_ = nullptr;
  std::optional<CachingModel> cache_;  ///< none: exact
  MemoryUse in_use_;
  Bytes allocated_ = 0;  // the sum of in_use_
  Bytes in_flight_ = 0;
  PeakMemory peak_;
  StepPhase phase_ = StepPhase::setup;
};

/// A phase that lasts as long as the scope, within another one.
class PhaseScope {
 public:
  PhaseScope(MemoryBudget& memory, StepPhase phase)
      : memory_(memory), outer_(memory.enter(phase)) {}
  ~PhaseScope() { memory_.enter(outer_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  MemoryBudget& memory_;
  StepPhase outer_;
};

}  // namespace dstune
