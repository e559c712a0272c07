// Kernels are loaded when a device first launches them.
#pragma once

#include "tests/support/cuda_on_host/include/driver_types.h"

namespace cuda_on_host {

/// To be called before each launch on the calling thread's device. The first of `kernel` there
/// takes Machine::kernel_bytes, and then waits for what the device's streams hold. No order comes
/// of that, since CUDA does not promise to wait.
/// @returns cudaErrorMemoryAllocation where there are not as many
cudaError_t load(const void* kernel);

}  // namespace cuda_on_host
