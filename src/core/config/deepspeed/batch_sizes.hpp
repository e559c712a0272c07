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
/// accumulation_steps, max_train_batch_size and warnings of `config` (whose autotuning section is
/// there already), and checks DeepSpeed's relation
///     train_batch_size = micro-batch * accumulation steps * ranks
/// as far as it can be known. A train_batch_size without micro-batch is the largest global batch
/// of the search.
///
/// @param ranks  of one experiment, if known
void read_batch_sizes(const json::object& deepspeed, std::optional<int> ranks, TuningConfig& config,
                      Problems& problems);

}  // namespace dstune
