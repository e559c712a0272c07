// The settings with which no stage can be measured, and how to tune without them.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/stage_plan.hpp"

namespace dstune {

/// Checks that at least one stage is modelled, whether or not it fits in memory.
///
/// @throws ConfigError  if every one of `stages` is unsupported: the message names each key by its
///                      JSON pointer, the stages that it stops, and how to tune without it
void check_modelled(const TuningConfig& config, const std::vector<StagePlan>& stages);

}  // namespace dstune
