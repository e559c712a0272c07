// What a search may hold in memory, known before it starts.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// An upper bound of the experiments that decide, from the lists and limits of the user.
std::int64_t most_experiments(const TuningConfig& config);

/// Every experiment has its own copy of the configuration: a problem at "file" if all of them
/// together would need more than 64 MiB.
void check_search_size(const TuningConfig& config, Problems& problems);

}  // namespace dstune
