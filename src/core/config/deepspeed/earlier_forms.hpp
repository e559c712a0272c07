// What earlier versions of DeepSpeed took and the present one refuses or rewrites.
#pragma once

#include "core/base/json.hpp"
#include "core/experiment/deepspeed_version.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// `file` without the keys that DeepSpeed has removed, whose mere presence makes it refuse a file:
/// one that is off is left out with a warning, one that asks for something is a fault, unless
/// `version` still takes it. Only MiCS, which is modelled, is kept, with a warning.
/// "zero_optimization": true becomes stage 1, false stage 0, as DeepSpeed takes it.
json::object without_earlier_forms(const json::object& file, const DeepSpeedVersion& version,
                                   Problems& problems);

}  // namespace dstune
