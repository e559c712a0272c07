// The device language's qualifiers, on the host.
#pragma once
#pragma GCC system_header

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
// Kept as one NOP for each warp before the kernel, which launch_bounds.cpp finds.
#define CUDA_ON_HOST_WARPS(threads, ...) (((threads) + 31) / 32)
#define __launch_bounds__(...) \
  __attribute__((patchable_function_entry(CUDA_ON_HOST_WARPS(__VA_ARGS__), CUDA_ON_HOST_WARPS(__VA_ARGS__))))
// A block runs on one thread of the host, and one block after another.
#define __shared__ static thread_local
