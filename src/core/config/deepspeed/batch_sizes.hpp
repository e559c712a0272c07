// What the search may choose: ZeRO stages and batch sizes, as the file bounds them.
#pragma once

#include <optional>

#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// zero_optimization.stage of `deepspeed`: an integer, a list of them, or "all"; absent and "auto"
/// mean all four, because choosing is what a tuner is asked for. Ascending, without repetition.
std::vector<int> read_stages(const json::object& deepspeed, Problems& problems);

/// Reads the three batch sizes of `deepspeed` into micro_batches, start_micro_batch,
/// accumulation_steps, objective.train_batch_size, max_train_batch_size and warnings of `config`,
/// whose autotuning section and objective are there already. A list of micro-batches must be within
/// autotuning's limits where `deepspeed` says the upper one, and raises it where not. A
/// train_batch_size is kept in every experiment unless objective.fixed_batch is false: it must be
/// possible (fixed_batch_fault()).
///
/// @param ranks  data-parallel ranks of one experiment, if known
void read_batch_sizes(const json::object& deepspeed, std::optional<int> ranks, TuningConfig& config,
                      Problems& problems);

}  // namespace dstune
