// Stage 3 with zero_quantized_gradients: which gradients are quantised, and over which ranks.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"
#include "core/train/zero/reduction/quantized_reduce.hpp"

namespace dstune {

/// The two groups of every rank, and the path of every gradient (docs/decisions/quantisation.md).
class QuantizedGradients {
 public:
  /// Null where the knob is off or all ranks are on one node: gradients are then averaged as
  /// without it.
  /// @param parameters  must outlive the result
  /// @throws QuantizationRefused  where DeepSpeed stops at the number of ranks
  static std::unique_ptr<QuantizedGradients> make(const StepConfig& config, Device& device,
                                                  Collectives& collectives,
                                                  const ModelParameters& parameters);

  /// True if the gradient of `tensor` has to be reduce-scattered.
  /// @throws QuantizationRefused  if DeepSpeed would get it wrong
  bool must_scatter(std::size_t tensor, DType dtype) const;
  /// This rank's part of the average of a gradient that need not be reduce-scattered.
  Buffer average(std::size_t tensor, Tensor gradient) const;

 private:
  QuantizedGradients(Device& device, Collectives& collectives, const ModelParameters& parameters,
                     const NodeGrid& grid);

  const ModelParameters& parameters_;
  std::unique_ptr<Collectives> intra_;
  std::unique_ptr<Collectives> inter_;
  QuantizedReduce reduce_;
};

}  // namespace dstune
