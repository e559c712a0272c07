// The passes over gradients before the update (zero-step.md 4.2): overflow, norm, clipping.
#pragma once

#include "core/train/device.hpp"
#include "core/train/tensor.hpp"

namespace dstune {

/// ZeRO-1/2's inf/NaN check of one gradient: 11 bytes per element of temporaries (7 for fp32) and,
/// for a 16-bit type, about 28 bytes of traffic per element.
bool has_overflow_like_zero(Device& device, Tensor gradient);

/// Stage 0's: a fp32 copy, and its sum.
bool has_overflow_like_wrapper(Device& device, Tensor gradient);

/// Stage 3's check of the whole gradient shard: two masks, one after the other.
bool has_overflow_in_shard(Device& device, Tensor gradients);

/// Sum of squares by way of a copy in double precision: 8 bytes per element of temporaries.
double sum_of_squares_in_double(Device& device, Tensor gradient);

/// Factor that undoes the loss scale and clips: 1 / (loss_scale * max(1, (norm + 1e-6) / limit)).
/// @param norm      of the unscaled gradients
/// @param clipping  the limit; 0: none
double unscale_factor(double norm, double clipping, double loss_scale);

}  // namespace dstune
