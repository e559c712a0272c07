// Counts and limits the bytes one rank has allocated on its device, per category.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/units.hpp"

namespace dstune {

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

/// Where in an optimizer step something happens.
enum class StepPhase {
  setup,       ///< before the first step, or what it left
  forward,     ///< with the gathers of stage 3
  backward,    ///< likewise
  reduction,   ///< of gradients, in backward or after it
  update,      ///< overflow check, norm, optimizer
  parameters,  ///< gathers after the update
};

constexpr std::size_t kStepPhases = 6;

std::string_view name_of(StepPhase phase);

/// The highest use since construction or reset_peak(), each at its first such moment.
struct PeakMemory {
  Bytes total = 0;  ///< largest sum of all categories at one moment
  StepPhase phase = StepPhase::setup;
  MemoryUse at_peak;     ///< what that sum was made of
  MemoryUse categories;  ///< largest use of each category, each at its own moment
  std::array<StepPhase, kMemoryCategories> phases{};  ///< of these moments

  bool operator==(const PeakMemory&) const = default;
};

/// A request did not fit. Caught only in run_experiment, where it becomes an Outcome.
class OutOfMemoryError : public Error {
 public:
  OutOfMemoryError(MemoryCategory category, Bytes requested, Bytes in_use, Bytes limit);

  MemoryCategory category;
  Bytes requested;  ///< bytes asked for
  Bytes in_use;     ///< bytes allocated at that moment
  Bytes limit;      ///< the budget
};

/// Sizes count exactly as asked for: no rounding, no allocator slack.
class MemoryBudget {
 public:
  explicit MemoryBudget(Bytes limit) : limit_(limit) {}

  /// @throws OutOfMemoryError  if `size` more bytes would exceed the limit; then nothing changed
  void reserve(MemoryCategory category, Bytes size);
  void release(MemoryCategory category, Bytes size) noexcept;

  bool has_room(Bytes size) const noexcept { return size <= limit_ - in_use_.total(); }

  Bytes limit() const noexcept { return limit_; }
  Bytes in_use() const noexcept { return in_use_.total(); }
  const MemoryUse& use() const noexcept { return in_use_; }
  const PeakMemory& peak() const noexcept { return peak_; }
  void reset_peak() noexcept;

  /// What follows belongs to `phase`. @returns the phase until now
  StepPhase enter(StepPhase phase) noexcept { return std::exchange(phase_, phase); }

 private:
  Bytes limit_;
  MemoryUse in_use_;
  PeakMemory peak_;
  StepPhase phase_ = StepPhase::setup;
};

/// A phase within another one.
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
