// Stage 3: modules that are gathered as one unit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// False: models have no leaf modules but those that DeepSpeed knows, which can all be modelled.
bool names_leaf_modules(const StepConfig& config);

/// DeepSpeed's leaf modules, in ascending order, none inside another: those that `leaf_module`
/// names (by default the blocks of experts), and those whose granularity is at most
/// stage3_module_granularity_threshold, parents first. The granularity of a module with children is
/// its elements / (1 + modules with parameters inside it), rounded down; modules of more than 1e9
/// elements and those without children have none.
std::vector<std::size_t> find_leaf_modules(const StepConfig& config,
                                           const ModelParameters& parameters);

/// The settings of `config` that cannot be modelled for this model, as StepConfig::unsupported
/// names them: leaf modules whose gradients DeepSpeed reduces before they are complete, because no
/// gradient reaches their inputs or another module uses their tensors too.
std::vector<std::string> unsupported_leaf_modules(const StepConfig& config,
                                                  const ModelParameters& parameters);

}  // namespace dstune
