#include "core/train/zero/frozen_parameters.hpp"

#include "core/train/zero/layout/initial_parameters.hpp"

namespace dstune {

FrozenParameters::FrozenParameters(Device& device, const ModelParameters& parameters, DType dtype,
                                   std::uint64_t seed)
    : device_(device), dtype_(dtype), buffers_(parameters.tensors.size()) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const ParameterSpec& tensor = parameters.tensors[i];
    if (tensor.trainable) continue;
    buffers_[i] = make_buffer(device, MemoryCategory::parameters, tensor.numel(), dtype);
    fill_initial(device, parameters, i, 0, seed, parameter(i));
  }
}

std::vector<float> FrozenParameters::read(std::size_t tensor) const {
  const Tensor values = parameter(tensor);
  std::vector<float> result(static_cast<std::size_t>(values.numel));
  device_.read(values, result);
  return result;
}

void FrozenParameters::write(std::size_t tensor, std::span<const float> values) const {
  device_.write(values, parameter(tensor));
}

}  // namespace dstune
