// What CUDA loads at the first use, used for the first time.
#pragma once

#include "core/device/device.hpp"

namespace dstune::cuda {

/// Runs small operations of every kind in each floating-point type and waits for them, so that
/// their modules, kernels and libraries are loaded. What the device cannot do stays away. Takes
/// some 100 ms and kWarmUp bytes of the device's budget.
/// @throws NoCodeError  where nothing can run
/// @throws CudaError, DeviceLostError, OutOfMemoryError
void warm_up(Device& device);

constexpr Bytes kWarmUp = Bytes{4} << 20U;

}  // namespace dstune::cuda
