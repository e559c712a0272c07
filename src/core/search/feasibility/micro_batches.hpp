// The micro-batches of a stage that are worth a measurement, with their accumulation steps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/feasibility/stage_plan.hpp"

namespace dstune {

/// About `count` micro-batches between `min` and `max`, the smallest and the largest that run:
/// ascending, at least max / 2, `max` last, without those that need as few accumulation steps as
/// `max` for `samples` (docs/deepspeed-step.md, "DeepSpeed's autotuner: micro-batches").
std::vector<std::int64_t> list_micro_batches(std::int64_t min, std::int64_t max,
                                             std::int64_t samples, int count);

/// The micro-batches in [lowest, largest) that fast mode tries beside such a list, descending in a
/// few steps.
std::vector<std::int64_t> smaller_micro_batches(std::int64_t lowest, std::int64_t largest);

/// The samples per rank and optimizer step where `largest` is the largest micro-batch: as many as
/// max_train_batch_size allows; if it is not set, `largest` times the file's accumulation steps.
std::int64_t samples_per_rank(const TuningConfig& config, int group_size, std::int64_t largest);

/// The point that fills `samples` per rank and optimizer step.
Point filled_point(int stage, std::int64_t micro_batch, std::int64_t samples);

/// The points of a stage that make the fixed batch (fixed_batch_splits()), ascending by
/// micro-batch.
std::vector<Point> fixed_batch_points(const TuningConfig& config, int group_size, int stage);

/// The micro-batches of a stage, with the accumulation steps that keep its largest batch: the
/// user's list; or else list_micro_batches() up to the largest that fits with the file's settings,
/// and up to the largest that fits with the leanest of the stage's space. Where the stage has no
/// space, they also have the ones that fast mode might try between these, and doublings of the
/// least. For latency without a list they have the doublings in any case, and all have the file's
/// accumulation.
///
/// With a fixed batch they are fixed_batch_points(). It does not matter whether they fit, because a
/// space may have settings that need less memory than those of the plan.
std::vector<Point> pool_points(const TuningConfig& config, int group_size, const StagePlan& plan);

}  // namespace dstune
