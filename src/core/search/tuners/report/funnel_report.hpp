// What --plan says about the spaces: how many configurations are left after each step, and why.
#pragma once

#include <string>

#include "core/base/json_fwd.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// A table with a line per stage: generated, valid, distinct, fitting, (dominated,) to be tried;
/// and the rules that made configurations invalid, with their numbers.
std::string format_funnel(const Pool& pool);

/// "funnel": [{"stage", "generated", "invalid": {RULE: count}, "valid", "distinct", "fitting",
/// "dominated", "to_be_tried"}] and "configurations": [{"name", "space", "stage", "micro_batch",
/// "accumulation_steps", "fate"; "reason" or "same_as"}], all of them.
void add_funnel(json::object& plan, const Pool& pool);

}  // namespace dstune
