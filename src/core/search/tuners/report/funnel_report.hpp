// How many configurations of the search spaces are left after each step, as text or as JSON.
#pragma once

#include <string>

#include "core/base/json_fwd.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// A table of the funnel with a line per stage: configurations generated, valid, distinct, fitting,
/// (dominated,) to be tried; and the rules that made configurations invalid, with their counts.
std::string format_funnel(const Pool& pool);

/// Adds to `plan` the members "funnel": [{"stage", "generated", "invalid": {RULE: count}, "valid",
/// "distinct", "fitting", "dominated", "to_be_tried"}] and "configurations": [{"name", "space",
/// "stage", "micro_batch", "accumulation_steps", "fate"; "reason" or "same_as"}], all of them.
void add_funnel(json::object& plan, const Pool& pool);

}  // namespace dstune
