#include "core/train/zero/layout/parameter_groups.hpp"

namespace dstune {

std::vector<ParameterGroup> make_parameter_groups(const OptimizerConfig& optimizer,
                                                  const ModelParameters& parameters) {
  ParameterGroup decay{{}, optimizer.weight_decay};
  ParameterGroup no_decay{{}, 0};
  for (std::size_t index = 0; index < parameters.tensors.size(); ++index) {
    if (!parameters.tensors[index].trainable) continue;
    const bool second = optimizer.client && !parameters.tensors[index].weight_decay;
    (second ? no_decay : decay).tensors.push_back(index);
  }
  std::vector<ParameterGroup> groups;
  if (!decay.tensors.empty()) groups.push_back(std::move(decay));
  if (!no_decay.tensors.empty()) groups.push_back(std::move(no_decay));
  return groups;
}

}  // namespace dstune
