// The passes over gradients before the update (zero-step.md 4.2): overflow, norm, clipping.
#pragma once

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// ZeRO-1/2's inf/NaN check of one gradient: 11 bytes per element of temporaries (7 for fp32) and,
/// for a 16-bit type, about 28 bytes of traffic per element. `flag`: see FindInfOrNan.
void find_overflow_like_zero(Device& device, Tensor gradient, Tensor flag);

/// Stage 0's: a fp32 copy, and its sum.
void find_overflow_like_wrapper(Device& device, Tensor gradient, Tensor flag);

/// Stage 3's check of the whole gradient shard: two masks, one after the other.
void find_overflow_in_shard(Device& device, Tensor gradients, Tensor flag);

/// `sum` += squares, by way of a copy in double precision: 8 bytes per element of temporaries.
void add_squares_in_double(Device& device, Tensor gradient, Tensor sum);

}  // namespace dstune
