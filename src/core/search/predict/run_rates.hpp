// What the groups of a run can do, each type of model by itself: measured, or estimated.
#pragma once

#include <optional>
#include <vector>

#include "core/device/rates/machine_rates.hpp"
#include "core/experiment/experiment.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

class RunRates {
 public:
  /// One group's, which count for every type.
  RunRates(MachineRates rates) : by_type_{std::move(rates)} {}  // NOLINT(*-explicit-*)
  /// @param by_type  at least one
  RunRates(std::vector<MachineRates> by_type, double spread)
      : by_type_(std::move(by_type)), spread_(spread) {}

  /// Of a model of this type; where nobody measured it, of the first.
  const MachineRates& of(DType dtype) const;
  bool overlaps() const { return by_type_.front().overlaps; }
  /// Between groups: the standard deviation of the logarithm of a step's time; 0 of one.
  double spread() const { return spread_; }

  bool operator==(const RunRates&) const = default;

 private:
  std::vector<MachineRates> by_type_;
  double spread_ = 0;
};

/// Of the groups of `ranks` that have measured their machine: typical() of each type, and what
/// apart a step takes on them. None if there are none.
std::optional<RunRates> run_rates(const std::vector<Record>& records, int ranks);

/// How fast a machine may be where nobody has measured it: orders of magnitude for the backend and
/// its threads.
MachineRates estimated_rates(const RunSettings& settings);

}  // namespace dstune
