// The sum of exponentials of a row, in one pass.
#pragma once

#include <cmath>

#include "kernels/activations.hpp"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

/// The sum of exponentials of some values, relative to the largest.
struct ExpSum {
  float largest = -INFINITY;
  float sum = 0;

  template <class T, int kCount, class Cap = NoCap>
  __device__ void add(const Pack<T, kCount>& pack, const Cap& cap = {}) {
    float values[kCount];
#pragma unroll
    for (int k = 0; k < kCount; ++k) values[k] = cap.value(to_float(pack.values[k]));
    float now = largest;
#pragma unroll
    for (int k = 0; k < kCount; ++k) now = fmaxf(now, values[k]);
    const float base = finite(now);
    sum *= __expf(largest - base);
    largest = now;
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum += __expf(values[k] - base);
  }

  /// The sum of all threads of the block.
  __device__ ExpSum of_block() const {
    ExpSum all;
    all.largest = finite(largest_of_block(largest, -INFINITY));
    all.sum = sum_of_block(sum * __expf(largest - all.largest));
    return all;
  }

 private:
  // inf - inf would be NaN.
  __device__ static float finite(float x) { return x == -INFINITY ? 0.0F : x; }
};

}  // namespace dstune::cuda
