// The effect of a configuration on all ranks: the step itself, as a number, and its memory; and
// which configurations cannot be the best.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// The effect of one experiment.
struct Effect {
  /// If two experiments have the same number, they are the same step on every rank.
  std::uint64_t number = 0;
  Measured dry;  ///< see PooledCandidate
  bool fits = false;
  std::string shortage;  ///< why it does not fit; "" if it does
  Stores full;           ///< what is too small for it
  std::string skipped;   ///< why there is no step at all; the other members then mean nothing
};

/// Whether a step reads a drive or writes to it.
bool uses_drive(const Measured& measured);

/// The ranks of ranks_to_look_at() whose steps may differ: rank 0 alone where nothing is divided
/// among the ranks, or everything evenly.
std::vector<int> ranks_that_differ(const StepConfig& step, const ModelParameters& parameters,
                                   int ranks);

/// Runs `experiment` dry on `ranks`, without its memory limit and where necessary with it.
Effect find_effect(Experiment experiment, const std::vector<int>& ranks, const DryRunner& dry_run);

/// True if `a` needs at least as much as `b` of everything that a dry run counts: memory, bytes and
/// calls of collectives, also of those beside which nothing else runs, passes, waits and host
/// events; and more than `b` of one of these. Both must have the same micro-batch and accumulation
/// steps.
bool is_dominated(const Measured& a, const Measured& b);

}  // namespace dstune
