// Sums of the rows of fp32 matrices.
#pragma once

#include <cstdint>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

constexpr int kRowSumThreads = 256;

/// The sum of the packs from `first` on, in steps of `step`.
template <int kWidth>
__device__ inline float sum_of_row(const float* row, std::int64_t cols, std::int64_t first,
                                   std::int64_t step) {
  float sum = 0;
#pragma unroll 4
  for (std::int64_t j = first * kWidth; j < cols; j += step * kWidth) {
    const auto pack = load_pack<kWidth>(row + j);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += pack.values[k];
  }
  return sum;
}

/// A warp for each row.
template <int kWidth>
__global__ void __launch_bounds__(kRowSumThreads)
    sum_short_rows(RowsOf<const float> in, std::int64_t rows, std::int64_t cols, float factor,
                   float* out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * (kRowSumThreads / kWarp) + threadIdx.x / kWarp;
  if (i >= rows) return;
  const unsigned lane = threadIdx.x % kWarp;
  const float sum = sum_of_warp(sum_of_row<kWidth>(in[i], cols, lane, kWarp));
  if (lane == 0) out[i] = factor * sum;
}

/// A block for each row.
template <int kWidth>
__global__ void __launch_bounds__(kRowSumThreads)
    sum_long_rows(RowsOf<const float> in, std::int64_t cols, float factor, float* out) {
  const float sum = sum_of_block(sum_of_row<kWidth>(in[blockIdx.x], cols, threadIdx.x, blockDim.x));
  if (threadIdx.x == 0) out[blockIdx.x] = factor * sum;
}

/// out[i] = factor times the sum of row i.
inline void queue_row_sums(cudaStream_t stream, const Matrix& in, float factor, float* out) {
  with_row_width<float>({in}, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    constexpr std::int64_t kShort = 4 * kWarp * kWidth;
    const auto rows = rows_of<const float>(in);
    if (in.cols <= kShort) {
      constexpr int kRows = kRowSumThreads / kWarp;
      launch(stream, {cover(in.rows, kRows).blocks, kRowSumThreads}, sum_short_rows<kWidth>, rows,
             in.rows, in.cols, factor, out);
    } else {
      launch(stream, {in.rows, threads_for_row(in.cols / kWidth, 4, kRowSumThreads)},
             sum_long_rows<kWidth>, rows, in.cols, factor, out);
    }
  });
}

}  // namespace dstune::cuda
