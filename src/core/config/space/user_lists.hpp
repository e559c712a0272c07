// Lists where DeepSpeed takes a scalar: axes of the search.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Takes the lists out of `file`, a whole CONFIG.json: the first value stays in each place. What
/// DeepSpeed itself reads as a list (betas) or does not know stays as it is; stages and
/// micro-batches are read elsewhere (core/config/deepspeed/batch_sizes.hpp).
/// @returns an axis for each list of two values and more, in the order of the file
std::vector<AxisGroup> take_lists(json::object& file, std::int64_t hidden_size, Problems& problems);

}  // namespace dstune
