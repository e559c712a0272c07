// Sums and maxima over the threads of a warp or a block, always in the same order.
#pragma once

#include <cuda_runtime.h>

namespace dstune::cuda {

constexpr int kWarp = 32;
/// Blocks have at most 1024 threads.
constexpr int kMostWarps = 32;

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// The larger; b if a is NaN.
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

/// f over the 32 values of a warp, the same bits in every lane. All lanes must call it.
/// @param f  commutative
template <class T, class F>
__device__ inline T reduce_warp(T value, F f) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = f(value, __shfl_xor_sync(0xffffffffU, value, distance));
  }
  return value;
}

/// The same over a block of whole warps. All threads must call it.
/// @param none  what f leaves as it is
template <class T, class F>
__device__ inline T reduce_block(T value, T none, F f) {
  __shared__ T of_warps[kMostWarps];
  const unsigned lane = threadIdx.x % kWarp;
  value = reduce_warp(value, f);
  __syncthreads();  // an earlier reduction may still be read
  if (lane == 0) of_warps[threadIdx.x / kWarp] = value;
  __syncthreads();
  return reduce_warp(lane < blockDim.x / kWarp ? of_warps[lane] : none, f);
}

template <class T>
__device__ inline T sum_of_warp(T value) {
  return reduce_warp(value, Plus{});
}

template <class T>
__device__ inline T sum_of_block(T value) {
  return reduce_block(value, T{}, Plus{});
}

template <class T>
__device__ inline T largest_of_warp(T value) {
  return reduce_warp(value, Larger{});
}

/// @param smallest  nothing is below it
template <class T>
__device__ inline T largest_of_block(T value, T smallest) {
  return reduce_block(value, smallest, Larger{});
}

}  // namespace dstune::cuda
