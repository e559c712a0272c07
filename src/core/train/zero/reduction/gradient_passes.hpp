// The passes over gradients before the update (docs/deepspeed-step.md, "The update"): overflow,
// norm, clipping.
#pragma once

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The inf/NaN check of one gradient in stages 0 to 2 (DeepSpeed 0.19.8): two reductions, without
/// temporaries. `flag`: see FindInfOrNan. Its operators' host time is entered as
/// HostEvent::optimizer_tensor's, of which profiles have fp32's, where nothing is checked.
void find_overflow_by_extremes(Device& device, Tensor gradient, Tensor flag);

/// Stage 3's inf/NaN check of the whole gradient shard, with two masks, one after the other.
void find_overflow_in_shard(Device& device, Tensor gradients, Tensor flag);

/// Adds the squares of `gradient` to `sum`, by way of a copy in double precision: 8 bytes per
/// element of temporaries.
void add_squares_in_double(Device& device, Tensor gradient, Tensor sum);

}  // namespace dstune
