// Keys of the "dstune" section that say which workers are used, and how they are checked.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"
#include "core/input/section_reader.hpp"

namespace dstune {

/// Reads "preflight" and "exclude" of the checked section `reader`. Which workers there are only
/// the run knows (core/search/schedule/excluded_workers.hpp).
void read_watch(const SectionReader& reader, TuningConfig& config, Problems& problems);

}  // namespace dstune
