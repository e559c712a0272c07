#include "core/train/zero/reduction/quantized_gradients.hpp"

#include <vector>

#include "core/base/text.hpp"

namespace dstune {

namespace {

std::vector<int> ranks_from(int first, int stride, int count) {
  std::vector<int> ranks;
  ranks.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

}  // namespace

std::unique_ptr<QuantizedGradients> QuantizedGradients::make(const StepConfig& config,
                                                             Device& device,
                                                             Collectives& collectives,
                                                             const ModelParameters& parameters) {
  if (!config.quantized_gradients) return nullptr;
  const NodeGrid grid = node_grid(collectives.size(), config.devices_per_node);
  if (grid.nodes == 1) return nullptr;
  // make_unique cannot call the constructor, which is private.
  return std::unique_ptr<QuantizedGradients>(
      new QuantizedGradients(device, collectives, parameters, grid));
}

QuantizedGradients::QuantizedGradients(Device& device, Collectives& collectives,
                                       const ModelParameters& parameters, const NodeGrid& grid)
    : parameters_(parameters),
      intra_(collectives.sub_group(
          ranks_from(collectives.rank() / grid.devices * grid.devices, 1, grid.devices))),
      inter_(collectives.sub_group(
          ranks_from(collectives.rank() % grid.devices, grid.devices, grid.nodes))),
      reduce_(device, *intra_, *inter_) {}

bool QuantizedGradients::must_scatter(std::size_t tensor, DType dtype) const {
  const ParameterSpec& spec = parameters_.tensors[tensor];
  const GradientPath path = gradient_path(spec.shape, reduce_.ranks());
  if (path == GradientPath::reduce_scatter) return true;
  if (path == GradientPath::refused) {
    throw QuantizationRefused(
        concat("zero_quantized_gradients: DeepSpeed cannot deal the gradient "
               "of ",
               spec.name, " out evenly to ", reduce_.ranks(), " ranks"));
  }
  if (dtype != DType::fp16) {
    throw QuantizationRefused(
        concat("zero_quantized_gradients: DeepSpeed reads gradients as fp16, "
               "whatever they are: ",
               name_of(dtype)));
  }
  return false;
}

Buffer QuantizedGradients::average(std::size_t tensor, Tensor gradient) const {
  return reduce_.average(gradient,
                         gradient_groups(parameters_.tensors[tensor].shape, reduce_.ranks()));
}

}  // namespace dstune
