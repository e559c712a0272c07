// DeepSpeed's "autotuning" section.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Reads `section` (an object, or else that is the problem). Notes for the user are added to
/// `warnings`.
AutotuningConfig read_autotuning(const json::value& section, Problems& problems,
                                 std::vector<std::string>& warnings);

}  // namespace dstune
