// The last way of a gradient from the device to the host, which updates by it.
#pragma once

#include "core/device/device.hpp"

namespace dstune {

/// Casts a gradient to fp32 on the device, unless it is, and copies it to `place`, in the order of
/// the current stream. The host waits for neither if `tier` is pinned.
/// @param place  fp32, in memory of `tier`
void send_gradient(Device& device, Tensor gradient, Tensor place, Tier tier);

}  // namespace dstune
