// DeepSpeed's own default spaces and templates (docs/deepspeed-step.md, "DeepSpeed's autotuner:
// spaces").
#pragma once

#include <vector>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"

namespace dstune {

/// What the template of `stage` puts into zero_optimization, in its order, the stage first. Numbers
/// are integers.
json::object deepspeeds_template(int stage);

/// The lists of DEFAULT_TUNING_SPACE_ZERO_{stage}, in their order; none in stage 0.
std::vector<AxisGroup> deepspeeds_axes(int stage);

}  // namespace dstune
