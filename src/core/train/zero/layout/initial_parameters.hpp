// The values that a new model starts with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/device.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// Fills `out` with elements [first, first + out.numel) of tensor `index`, as its InitialValue
/// says. They depend on the seed and the element alone, not on how the tensor is sharded.
void fill_initial(Device& device, const ModelParameters& parameters, std::size_t index,
                  std::int64_t first, std::uint64_t seed, Tensor out);

}  // namespace dstune
