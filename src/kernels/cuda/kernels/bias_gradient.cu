// Column sums in two passes: blocks add up some rows of some columns, then a second kernel adds up
// what the blocks have, in order.
#include <algorithm>
#include <cassert>

#include "core/device/operations/elementwise.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kBlocksAtOnce = 3;  // on a multiprocessor, or too few bytes are on their way
constexpr int kRowsAtOnce = 4;    // read by a thread before it adds them
constexpr std::int64_t kWantedBlocks = 1024;  // all multiprocessors are busy with fewer
constexpr std::int64_t kLeastRows = 64;       // of a block, or its end costs more than its sums

/// How the first pass is cut.
struct Cut {
  std::int64_t tiles;   ///< of columns
  std::int64_t chunks;  ///< of rows
  std::int64_t rows;    ///< of a chunk
};

Cut cut_of(const Matrix& matrix, std::int64_t tile_cols) {
  const auto divided = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t tiles = divided(matrix.cols, tile_cols);
  const auto fitting = static_cast<std::int64_t>(Gpu::kScratch / sizeof(float)) /
                       std::max<std::int64_t>(matrix.cols, 1);
  const std::int64_t wanted =
      std::min(kWantedBlocks / std::max<std::int64_t>(tiles, 1), divided(matrix.rows, kLeastRows));
  const std::int64_t chunks = std::max<std::int64_t>(std::min(wanted, fitting), 1);
  return {tiles, chunks, divided(matrix.rows, chunks)};
}

/// sums[k] += column k of the pack at `x`, of the rows [row, end) in steps of kWarps.
template <class T, int kWidth>
__device__ void add_rows(const T* x, std::int64_t stride, std::int64_t row, std::int64_t end,
                         float (&sums)[kWidth]) {
  for (; row < end; row += kWarps * kRowsAtOnce) {
    Pack<T, kWidth> packs[kRowsAtOnce];
#pragma unroll
    for (int p = 0; p < kRowsAtOnce; ++p) {
      if (row + p * kWarps < end) packs[p] = load_pack<kWidth>(x + (row + p * kWarps) * stride);
    }
#pragma unroll
    for (int p = 0; p < kRowsAtOnce; ++p) {
      if (row + p * kWarps >= end) break;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) sums[k] += to_float(packs[p].values[k]);
    }
  }
}

/// Each warp takes every kWarps-th row of a chunk, each lane kWidth columns of a tile.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    sum_chunks(const T* x, std::int64_t rows, std::int64_t cols, std::int64_t stride, Cut cut,
               float* partials) {
  constexpr int kTile = kWarp * kWidth;
  __shared__ float of_warps[kWarps][kTile];
  const auto warp = static_cast<int>(threadIdx.x) / kWarp;
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t chunk = blockIdx.x / cut.tiles;
  const std::int64_t tile = (blockIdx.x - chunk * cut.tiles) * kTile;
  const std::int64_t end = min(rows, (chunk + 1) * cut.rows);
  float sums[kWidth] = {};
  if (tile + lane * kWidth < cols) {
    add_rows<T, kWidth>(x + tile + lane * kWidth, stride, chunk * cut.rows + warp, end, sums);
  }
#pragma unroll
  for (int k = 0; k < kWidth; ++k) of_warps[warp][lane * kWidth + k] = sums[k];
  __syncthreads();
  const auto col = static_cast<int>(threadIdx.x);
  if (col >= kTile || tile + col >= cols) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) sum += of_warps[w][col];
  partials[chunk * cols + tile + col] = sum;
}

/// A lane for each column; each warp takes every kWarps-th chunk.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_chunks(const float* partials, std::int64_t chunks, std::int64_t cols, T* out) {
  __shared__ float of_warps[kWarps][kWarp];
  const std::int64_t warp = threadIdx.x / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  const std::int64_t col = std::int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (col < cols) {
#pragma unroll 4
    for (std::int64_t i = warp; i < chunks; i += kWarps) sum += partials[i * cols + col];
  }
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || col >= cols) return;
#pragma unroll
  for (int w = 1; w < kWarps; ++w) sum += of_warps[w][lane];
  out[col] = from_float<T>(sum);
}

template <class T, int kWidth>
std::int64_t queue_chunks(cudaStream_t stream, const Matrix& d_out, float* partials) {
  const Cut cut = cut_of(d_out, kWarp * kWidth);
  launch(stream, {cut.tiles * cut.chunks, kThreads}, sum_chunks<T, kWidth>,
         elements<const T>(d_out), d_out.rows, d_out.cols, d_out.stride, cut, partials);
  return cut.chunks;
}

}  // namespace

void CudaDevice::compute(const BiasGradient& op) {
  assert(op.d_out.cols == op.out.numel && op.d_out.dtype == op.out.dtype);
  auto* const partials = scratch<float>();
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    constexpr int kWidth = kPackWidth<T>;
    const std::int64_t chunks = has_packed_rows<kWidth, T>(op.d_out)
                                    ? queue_chunks<T, kWidth>(stream(), op.d_out, partials)
                                    : queue_chunks<T, 1>(stream(), op.d_out, partials);
    launch(stream(), {(op.out.numel + kWarp - 1) / kWarp, kThreads}, add_chunks<T>, partials,
           chunks, op.out.numel, elements<T>(op.out));
  });
}

}  // namespace dstune::cuda
