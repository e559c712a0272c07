// The settings of a stage's spaces that need the least memory, and the largest micro-batch that
// fits with them.
#pragma once

#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// The largest micro-batch that fits with the leanest point of the stage's spaces, within the
/// user's limits, by dry run; 0: none. That point is found at the least micro-batch, one list after
/// the other: of each list the value is kept with which the group's rank 0 needs least memory. Of
/// long lists only a few values are tried.
std::int64_t max_micro_batch_of_leanest(const TuningConfig& config, int group_size, int stage,
                                        const DryRunner& dry_run);

/// Returns `plan` with max_micro_batch_of_leanest, which is looked for where the micro-batches of
/// the stage's pool depend on it.
StagePlan with_leanest(const TuningConfig& config, int group_size, StagePlan plan,
                       const DryRunner& dry_run);

}  // namespace dstune
