// The device language's qualifiers, on the host.
#pragma once
#pragma GCC system_header

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// A block runs on one thread of the host, and one block after another.
#define __shared__ static thread_local
