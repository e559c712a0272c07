// What a configuration would do to all ranks: the step itself, as a number, and its memory; and
// which configurations can only lose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// Of one experiment.
struct Effect {
  std::uint64_t number = 0;  ///< equal for two experiments: the same step, on every rank
  Measured dry;              ///< see PooledCandidate
  bool fits = false;
  std::string shortage;  ///< why it does not fit
  std::string skipped;   ///< why there is no step at all; then the rest means nothing
};

/// Those of ranks_to_look_at() whose steps may differ: rank 0 alone where nothing is divided, or
/// all is divided evenly.
std::vector<int> ranks_that_differ(const StepConfig& step, const ModelParameters& parameters,
                                   int ranks);

/// Runs `experiment` dry on `ranks`, with and without its memory limit.
Effect find_effect(Experiment experiment, const std::vector<int>& ranks, const DryRunner& dry_run);

/// True if `a` needs at least as much as `b` of everything that a dry run counts: memory, bytes and
/// calls of collectives, those of them beside which nothing runs, passes, waits and host events;
/// and more of one of them. Both have the same micro-batch and accumulation.
bool is_dominated(const Measured& a, const Measured& b);

}  // namespace dstune
