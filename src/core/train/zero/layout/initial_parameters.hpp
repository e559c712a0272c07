// The values a new model starts with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/device.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// Fills `out` with elements [first, first + out.numel) of tensor `index`: normal with
/// initializer_range, biases 0, LayerNorm weights 1, residual projections scaled by 1 / sqrt(2 L),
/// as HF's GPT-2 does. Depends on the seed and the element alone, not on how it is sharded.
void fill_initial(Device& device, const ModelSpec& model, const ModelParameters& parameters,
                  std::size_t index, std::int64_t first, std::uint64_t seed, Tensor out);

}  // namespace dstune
