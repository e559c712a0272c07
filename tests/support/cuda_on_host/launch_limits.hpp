// Which launches CUDA refuses.
#pragma once

#include "tests/support/cuda_on_host/include/driver_types.h"

namespace cuda_on_host {

/// The error of launching `kernel` on the calling thread's device, or cudaSuccess: blocks and grids
/// that no GPU has, more threads than the kernel's __launch_bounds__, more shared memory than it
/// may have.
cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel);

}  // namespace cuda_on_host
