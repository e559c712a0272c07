// The parameters that are not trained, in stages 0 to 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/device.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// Every rank has the frozen tensors in the model dtype, each as an allocation of its own. They
/// have no master, gradient or optimizer state and are in no flat buffer, so that no step ever
/// sends them (is_optimized_parameter() of DeepSpeed).
class FrozenParameters {
 public:
  /// Allocates and fills the frozen tensors.
  FrozenParameters(Device& device, const ModelParameters& parameters, DType dtype,
                   std::uint64_t seed);

  bool has(std::size_t tensor) const { return static_cast<bool>(buffers_[tensor]); }
  Tensor parameter(std::size_t tensor) const { return buffers_[tensor].tensor(dtype_); }
  std::vector<float> read(std::size_t tensor) const;
  void write(std::size_t tensor, std::span<const float> values) const;

 private:
  Device& device_;
  DType dtype_;
  std::vector<Buffer> buffers_;  // by tensor; empty where it is trained
};

}  // namespace dstune
