// "$VAR" in CONFIG.json: one line of a space for all places that hold the variable.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Fills the variables of dstune.variables into the strings of `file`, a whole CONFIG.json: the
/// first value of each stays there. A string that is one variable takes its value, whatever its
/// type; in a longer one the value's text is filled in, and "$$" is a dollar. Variables that
/// dstune.zip ties, or that share a string, move as one group. Without dstune.variables a dollar
/// means nothing.
///
/// Problems: a variable that is not defined, one that nothing uses, one where all experiments are
/// the same.
std::vector<AxisGroup> take_templates(json::object& file, std::int64_t hidden_size,
                                      Problems& problems);

}  // namespace dstune
