// The values of other types that pydantic, which checks DeepSpeed's sections, accepts.
#pragma once

#include "core/base/json.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// `value` as the type that `rule` wants, where pydantic 2 converts it: "yes" and 1 to true, "500"
/// and true to integers, "5e8" to a number. Anything else as it is.
json::value coerced(const json::value& value, const KeyRule& rule);

}  // namespace dstune
