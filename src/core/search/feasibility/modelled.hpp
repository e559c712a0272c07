// What no stage of a configuration can be measured with, and the way out.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/stage_plan.hpp"

namespace dstune {

/// A run needs one stage that is modelled, whether or not it fits.
///
/// @throws ConfigError  if every one of `stages` is unsupported: each key by its JSON pointer, the
///                      stages it stops, and how to tune without it
void check_modelled(const TuningConfig& config, const std::vector<StagePlan>& stages);

}  // namespace dstune
