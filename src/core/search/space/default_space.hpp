// Our own default space: what changes time or memory in a stage, with the model's own sizes.
#pragma once

#include <vector>

#include "core/config/space/axis.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// The axes of `stage` for `ranks` that share a model; none in stage 0, where ZeRO does nothing.
/// What changes the numbers that training computes is left alone.
std::vector<AxisGroup> default_axes(const ModelSpec& spec, const ModelParameters& parameters,
                                    int stage, int ranks);

}  // namespace dstune
