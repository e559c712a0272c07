// What a search has before it, known without its pool: in a fraction of a second for any space.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

struct SearchOutline {
  std::vector<int> stages;           ///< in which something fits
  std::uint64_t configurations = 0;  ///< generated in these; some may be the same, or not fit
  std::uint64_t experiments = 0;     ///< of these at most, repetitions aside

  bool operator==(const SearchOutline&) const = default;
};

/// @param stages  plan_stages()
SearchOutline outline_search(const TuningConfig& config, int group_size,
                             const std::vector<StagePlan>& stages,
                             const DryRunner& dry_run = make_dry_runner());

}  // namespace dstune
