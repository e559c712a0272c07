// What a configuration would do to all ranks: the step itself, as a number, and its memory.
#pragma once

#include <cstdint>
#include <string>

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

/// Runs `experiment` dry on the ranks that are looked at, with and without its memory limit.
Effect find_effect(Experiment experiment, const DryRunner& dry_run);

}  // namespace dstune
