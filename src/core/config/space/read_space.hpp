// The search space of CONFIG.json: its lists, its variables, dstune.space and dstune.precision.
#pragma once

#include <cstdint>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Configurations of one stage, micro-batches aside.
constexpr std::uint64_t kMostConfigurations = 10'000'000;

/// Reads the space and leaves in `file`, a whole CONFIG.json, the first value of everything that is
/// searched.
/// @param fast  autotuning.fast: if false, default spaces come in where the user says nothing
SpaceConfig take_space(json::object& file, bool fast, std::int64_t hidden_size, Problems& problems);

}  // namespace dstune
