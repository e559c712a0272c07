// The micro-batches that a tuner over a pool chooses from.
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/plan/make_experiment.hpp"
#include "core/search/plan/stage_plan.hpp"

namespace dstune {

/// Powers of two and what is half-way between two of them within [least, most], and both ends:
/// ascending. Neighbours differ by half at most.
std::vector<std::int64_t> spread_micro_batches(std::int64_t least, std::int64_t most);

/// Micro-batch x accumulation that makes `total` samples of `group_size` ranks exactly, with
/// micro-batches of [least, most], ascending; none if there is no such pair.
std::vector<Point> exact_points(std::int64_t total, int group_size, int stage, std::int64_t least,
                                std::int64_t most);

/// Micro-batches of `plan`'s stage that fit by dry run: the user's list, or a spread, with the
/// user's accumulation as search_point() has it. With a fixed batch: all pairs that make it, of the
/// user's list if there is one.
std::vector<Point> batch_points(const TuningConfig& config, int group_size, const StagePlan& plan);

}  // namespace dstune
