// The rates of the groups of a run, for each type of model: measured, or estimated.
#pragma once

#include <optional>
#include <vector>

#include "core/device/rates/machine_rates.hpp"
#include "core/experiment/experiment.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

class RunRates {
 public:
  /// Takes the rates of one group, which count for every type of model.
  RunRates(MachineRates rates) : by_type_{std::move(rates)} {}  // NOLINT(*-explicit-*)
  /// @param by_type  the rates of each type, at least one
  RunRates(std::vector<MachineRates> by_type, double spread)
      : by_type_(std::move(by_type)), spread_(spread) {}

  /// The rates for models of this type; if it was not measured, those of the first type.
  const MachineRates& of(DType dtype) const;
  bool overlaps() const { return by_type_.front().overlaps; }
  /// The host's, for models of every type; none if nobody has measured them.
  const std::optional<HostRates>& host() const { return by_type_.front().host; }
  /// The spread between groups: the standard deviation of the logarithm of a step's time; 0 for one
  /// group.
  double spread() const { return spread_; }

  bool operator==(const RunRates&) const = default;

 private:
  std::vector<MachineRates> by_type_;
  double spread_ = 0;
};

/// The rates of the groups of `ranks` that have measured their machine: typical() for each type,
/// and how far apart the times of a step on them are. None if there are no such groups.
std::optional<RunRates> run_rates(const std::vector<Record>& records, int ranks);

/// Rates for a machine that was not measured: orders of magnitude for the backend and its threads.
MachineRates estimated_rates(const RunSettings& settings);

}  // namespace dstune
