// Stage 3: the coordinator of a configuration and a model.
#pragma once

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/gather/parameter_coordinator.hpp"

namespace dstune {

/// Makes the coordinator. Tensors of at most stage3_param_persistence_threshold elements are
/// persistent, in registration order, as long as all of them together have at most
/// stage3_model_persistence_threshold. stage3_allgather_sequential makes the prefetch bucket 1: one
/// tensor at a time. A leaf module uses all tensors inside it.
ParameterCoordinator make_parameter_coordinator(const StepConfig& config,
                                                const ModelParameters& parameters);

}  // namespace dstune
