// What a kernel's __launch_bounds__ says.
#pragma once

namespace cuda_on_host {

/// The most threads of a block, in whole warps; kMaxThreads without __launch_bounds__.
unsigned launch_bound_of(const void* kernel);

}  // namespace cuda_on_host
