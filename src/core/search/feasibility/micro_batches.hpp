// Which micro-batches of a stage are worth a measurement, with their accumulation steps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/feasibility/stage_plan.hpp"

namespace dstune {

/// Candidates between the smallest and the largest micro-batch that run, ascending, `max` last: at
/// least max / 2, about `count` of them, without those that need as few accumulation steps as `max`
/// for `samples` (docs/deepspeed-step.md, "DeepSpeed's autotuner: micro-batches").
std::vector<std::int64_t> list_micro_batches(std::int64_t min, std::int64_t max,
                                             std::int64_t samples, int count);

/// What fast mode tries beside such a list, descending from below its largest, in a few steps:
/// those of [lowest, largest).
std::vector<std::int64_t> smaller_micro_batches(std::int64_t lowest, std::int64_t largest);

/// Samples of a rank and optimizer step where `largest` is the largest micro-batch: as many as
/// max_train_batch_size allows; else its own with the file's accumulation.
std::int64_t samples_per_rank(const TuningConfig& config, int group_size, std::int64_t largest);

/// The point that fills `samples` per rank and optimizer step.
Point filled_point(int stage, std::int64_t micro_batch, std::int64_t samples);

/// Micro-batch x accumulation that makes `total` samples of `group_size` ranks exactly, with
/// micro-batches of [least, most], ascending; none if there is no such pair.
std::vector<Point> exact_points(std::int64_t total, int group_size, int stage, std::int64_t least,
                                std::int64_t most);

/// The micro-batches of a stage, with the accumulation steps that keep its largest batch: the
/// user's list; or what list_micro_batches() makes of the largest that fits the file's settings,
/// and for the largest that fits the leanest of the stage's space. Where the stage has no space,
/// also what fast mode might try between these, and doublings of the least. For latency without a
/// list: the doublings in any case, and all with the file's accumulation.
///
/// With a fixed batch: all pairs that make it exactly, of the user's list if there is one, whether
/// they fit or not: a space may have settings that need less than those of the plan.
std::vector<Point> pool_points(const TuningConfig& config, int group_size, const StagePlan& plan);

}  // namespace dstune
