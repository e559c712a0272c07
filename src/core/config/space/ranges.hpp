// Values between two bounds: {"from", "to", "per_decade"}, {"from", "to", "step"}, {"powers_of"}.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/space/axis_values.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// The values of `range`, ascending; integers where `place` holds integers. Both bounds belong to
/// it as far as the steps reach them; they may be products such as "10*h". Faults of `range` are
/// problems at `where`, and then the list is empty.
std::vector<json::value> read_range(const json::object& range, const KeyPlace& place,
                                    std::string_view where, std::int64_t hidden_size,
                                    Problems& problems);

}  // namespace dstune
