// The settings of a stage's spaces that need the least memory, and what they leave room for.
#pragma once

#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// The largest micro-batch that fits the leanest point of the stage's spaces, within the user's
/// limits, by dry run; 0: none. The point is looked for at the least micro-batch, one list after
/// the other: of each list the value stays with which group rank 0 needs least. Of long lists a few
/// values stand for all.
std::int64_t max_micro_batch_of_leanest(const TuningConfig& config, int group_size, int stage,
                                        const DryRunner& dry_run);

/// `plan` with max_micro_batch_of_leanest, where the micro-batches of the stage's pool depend on
/// it.
StagePlan with_leanest(const TuningConfig& config, int group_size, StagePlan plan,
                       const DryRunner& dry_run);

}  // namespace dstune
