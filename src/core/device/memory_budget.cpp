#include "core/device/memory_budget.hpp"

#include <numeric>

#include "core/base/text.hpp"

namespace dstune {

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "parameters", "gradients", "optimizer", "buckets", "activations", "temporaries"};
  return kNames[static_cast<std::size_t>(category)];
}

std::string_view name_of(StepPhase phase) {
  constexpr std::array<std::string_view, kStepPhases> kNames = {
      "setup", "forward", "backward", "reduction", "update", "parameters"};
  return kNames[static_cast<std::size_t>(phase)];
}

Bytes MemoryUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

OutOfMemoryError::OutOfMemoryError(MemoryCategory asked_for, Bytes requested_bytes,
                                   Bytes in_use_bytes, Bytes limit_bytes)
    : Error(concat("out of memory: requested ", format_bytes(requested_bytes), " for ",
                   name_of(asked_for), " with ", format_bytes(in_use_bytes), " of ",
                   format_bytes(limit_bytes), " in use")),
      category(asked_for),
      requested(requested_bytes),
      in_use(in_use_bytes),
      limit(limit_bytes) {}

void MemoryBudget::reserve(MemoryCategory category, Bytes size) {
  const Bytes total = in_use_.total();
  if (!has_room(size)) throw OutOfMemoryError(category, size, total, limit_);
  in_use_.at(category) += size;
  if (in_use_.at(category) > peak_.categories.at(category)) {
    peak_.categories.at(category) = in_use_.at(category);
    peak_.phases[static_cast<std::size_t>(category)] = phase_;
  }
  if (total + size > peak_.total) {
    peak_.total = total + size;
    peak_.at_peak = in_use_;
    peak_.phase = phase_;
  }
}

void MemoryBudget::release(MemoryCategory category, Bytes size) noexcept {
  in_use_.at(category) -= size;
}

void MemoryBudget::reset_peak() noexcept {
  peak_.total = in_use_.total();
  peak_.phase = phase_;
  peak_.at_peak = in_use_;
  peak_.categories = in_use_;
  peak_.phases.fill(phase_);
}

}  // namespace dstune
