// The global batch that every experiment keeps: how it may be split, and what does not divide it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"

namespace dstune {

/// A micro-batch of a rank and the accumulation steps that make a global batch of it.
struct BatchSplit {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;

  bool operator==(const BatchSplit&) const = default;
};

/// Every way to train exactly objective.train_batch_size samples a step on `ranks` data-parallel
/// ranks, ascending by micro-batch: micro-batches of the user's list, or all within autotuning's
/// limits; accumulation follows. Where the file has a number of accumulation steps and leaves the
/// micro-batch open, it is the other way round. Empty if there is none, or if no batch is fixed.
std::vector<BatchSplit> fixed_batch_splits(const TuningConfig& config, int ranks);

/// Why the fixed batch cannot be: the three sizes contradict each other, or it has no split; with
/// the nearest batches that can. "" if it can, or if no batch is fixed.
/// @param ranks  none: not known yet, so that only the file's own numbers are compared
std::string fixed_batch_fault(const TuningConfig& config, std::optional<int> ranks);

}  // namespace dstune
