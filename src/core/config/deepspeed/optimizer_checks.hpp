// The "optimizer" section: its type and the parameters of that type.
#pragma once

#include "core/base/json.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Faults of the section that DeepSpeed would stop at: no type, a type that is nearly one, a
/// parameter that the type does not have. Types that nobody here knows are left alone.
void check_optimizer(const json::object& optimizer, Problems& problems);

}  // namespace dstune
