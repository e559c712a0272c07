// One experiment on one rank, from allocation to outcome.
#pragma once

#include <cstdint>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/device/group.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

class DryRunMemory;

/// Collective over the group. Allocates, votes, measures: a rank that cannot allocate says so
/// before any rank enters a data collective. What the step allocates only later is checked up front
/// by a dry run against the same budget, so that the vote covers it.
///
/// @returns the merged outcome on group rank 0; this rank's own view elsewhere
/// @throws ExperimentAborted  if the dispatcher says so
/// @throws Error (any other exception) if something broke on this rank alone: the caller reports it
///         and the dispatcher aborts the others
Outcome run_experiment(const Experiment& experiment, Device& device, Collectives& collectives,
                       Group& group);

/// What `experiment` needs on rank `rank` of its group, from a dry run of the same code: the exact
/// peak, or OutOfMemory against the memory limit, and the collectives of one step. Local; takes a
/// few milliseconds.
struct DryRun {
  Outcome outcome;  ///< Measured (peak_memory, collectives; times 0), OutOfMemory or Skipped
  /// The step signature, a hash of everything that the step asked of its device, in order: memory,
  /// operations, messages, waits. Steps with equal signatures are the same. 0 if the experiment was
  /// skipped before the step began.
  std::uint64_t walk = 0;
  bool folded = false;  ///< StepReport::folded
};
/// @param imitated  as DryDevice has it
/// @param known  may know the model's parameters already, and what `imitated` says
DryRun dry_run(const Experiment& experiment, int rank, const Device* imitated = nullptr,
               DryRunMemory* known = nullptr);

/// False if the experiment would be Skipped before anything runs.
bool is_modelled(const Experiment& experiment);

}  // namespace dstune
