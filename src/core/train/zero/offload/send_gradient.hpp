// The last way of a gradient to where it is updated by, which may be on the host.
#pragma once

#include "core/device/device.hpp"

namespace dstune {

/// Casts a gradient to fp32 on the device, unless it is, and copies it to `place`, in the order of
/// the current stream. The host waits for neither unless `tier` is pageable.
/// @param place  fp32, in memory of `tier`
void send_gradient(Device& device, Tensor gradient, Tensor place, Tier tier);

}  // namespace dstune
