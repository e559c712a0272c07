#include "core/train/zero/gather/make_parameter_coordinator.hpp"

#include <cstdint>
#include <utility>

#include "core/train/zero/layout/leaf_modules.hpp"

namespace dstune {

ParameterCoordinator make_parameter_coordinator(const StepConfig& config,
                                                const ModelParameters& parameters) {
  ParameterCoordinator::Model model;
  std::int64_t persistent = 0;
  for (const ParameterSpec& tensor : parameters.tensors) {
    const std::int64_t numel = tensor.numel();
    const bool stays = numel <= config.param_persistence_threshold &&
                       persistent + numel <= config.model_persistence_threshold;
    if (stays) persistent += numel;
    model.numels.push_back(numel);
    model.persistent.push_back(stays);
    model.frozen.push_back(!tensor.trainable);
  }
  for (const ModuleSpec& module : parameters.modules) {
    model.used_tensors.push_back(module.parameters);
  }
  for (const std::size_t leaf : find_leaf_modules(config, parameters)) {
    model.used_tensors[leaf] = parameters.tensors_within(leaf);
  }
  const std::int64_t bucket = config.allgather_sequential ? 1 : config.prefetch_bucket_size;
  return {std::move(model),
          {bucket, config.max_live_parameters, config.max_reuse_distance,
           config.behaviour.drops_recomputed}};
}

}  // namespace dstune
