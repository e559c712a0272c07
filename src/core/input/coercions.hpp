// Conversions of values that pydantic, which checks DeepSpeed's sections, accepts as another type.
#pragma once

#include "core/base/json.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// `value` in the type that `rule` wants, if pydantic 2 converts it: "yes" and 1 to true, "500" and
/// true to integers, "5e8" to a number. Any other value is returned as it is.
json::value coerced(const json::value& value, const KeyRule& rule);

}  // namespace dstune
