// Model states of stage 3 by a walk over two optimizer steps: memory_model.hpp's part for it.
#pragma once

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "tests/oracle/memory_model.hpp"

namespace dstune::oracle {

/// Pure arithmetic: follows the hooks of a micro-step, ParameterCoordinator's decisions and the
/// gradient bucket, and adds up what is allocated at each moment (docs/deepspeed-step.md, "Memory
/// of stage 3" and "Gathers of stage 3").
/// @param attention_scratch  bytes of temporaries while attention runs
ModelStateMemory predict_sharded(const StepConfig& config, const ModelParameters& parameters,
                                 int ranks, int rank, Bytes attention_scratch);

}  // namespace dstune::oracle
