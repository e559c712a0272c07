// Keys of the "dstune" section that say how to search and for what.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"
#include "core/input/section_reader.hpp"

namespace dstune {

/// Reads "tuner", "stop_at_chance", "time_budget" and "objective" of the checked section `reader`.
void read_search_keys(const SectionReader& reader, TuningConfig& config, Problems& problems);

/// Completes the objective by what only the whole file can say: its metric wins, and a batch can
/// only be kept where the file has one (read_batch_sizes() takes it).
/// @param deepspeed  the file
void complete_objective(const json::object& deepspeed, TuningConfig& config, Problems& problems);

}  // namespace dstune
