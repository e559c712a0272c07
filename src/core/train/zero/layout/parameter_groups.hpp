// Parameter groups: the tensors that share the optimizer's settings, and hence a flat buffer.
#pragma once

#include <cstddef>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

struct ParameterGroup {
  std::vector<std::size_t> tensors;  ///< registration indices, ascending
  double weight_decay = 0;
};

/// One group if there is an "optimizer" section, else HF Trainer's two, decay and no-decay. Frozen
/// tensors are in no group, and empty groups are left out.
std::vector<ParameterGroup> make_parameter_groups(const OptimizerConfig& optimizer,
                                                  const ModelParameters& parameters);

}  // namespace dstune
