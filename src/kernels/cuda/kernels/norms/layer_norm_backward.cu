// One pass over d_out and x: a block takes every gridDim.x-th row, writes its d_x, and keeps the
// sums of its columns, which a second kernel adds up in the order of the blocks.
#include <algorithm>
#include <cassert>

#include "core/device/operations/norms.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 512;
// On a multiprocessor: fewer do not keep its memory busy, more have more sums to add up.
constexpr int kWantedThreads = 768;

template <class T>
struct Backward {
  RowsOf<const T> d_out;
  RowsOf<const T> x;
  const T* gamma;
  const float* mean;
  const float* rstd;
  RowsOf<T> d_x;
  float* sums;  // of each block, of gamma's and of beta's gradients (blocks, 2, cols)
  std::int64_t rows;
  std::int64_t cols;
};

/// Sums of one row.
struct RowSums {
  float g = 0;
  float g_xhat = 0;
};

template <int kWidth>
struct ColumnSums {
  float gamma[kWidth] = {};
  float beta[kWidth] = {};
};

/// What a thread does with one pack of columns.
template <class T, int kWidth>
struct Columns {
  const Backward<T>& op;
  std::int64_t column;

  __device__ void add_row(std::int64_t i, RowSums& row, ColumnSums<kWidth>& columns) const {
    const auto d_out = load_pack<kWidth>(op.d_out[i] + column);
    const auto x = load_pack<kWidth>(op.x[i] + column);
    const auto gamma = load_pack<kWidth>(op.gamma + column);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float d = to_float(d_out.values[k]);
      const float xhat = (to_float(x.values[k]) - op.mean[i]) * op.rstd[i];
      const float g = d * to_float(gamma.values[k]);
      row.g += g;
      row.g_xhat += g * xhat;
      columns.gamma[k] += d * xhat;
      columns.beta[k] += d;
    }
  }

  // What was read before is still in the first cache.
  __device__ void store_row(std::int64_t i, const RowSums& means) const {
    const auto d_out = load_pack<kWidth>(op.d_out[i] + column);
    const auto x = load_pack<kWidth>(op.x[i] + column);
    const auto gamma = load_pack<kWidth>(op.gamma + column);
    Pack<T, kWidth> d_x;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float xhat = (to_float(x.values[k]) - op.mean[i]) * op.rstd[i];
      const float g = to_float(d_out.values[k]) * to_float(gamma.values[k]);
      d_x.values[k] = from_float<T>(op.rstd[i] * (g - means.g - xhat * means.g_xhat));
    }
    store_pack(op.d_x[i] + column, d_x);
  }

  __device__ void store_sums(const ColumnSums<kWidth>& columns) const {
    float* const own = op.sums + std::int64_t{blockIdx.x} * 2 * op.cols + column;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      own[k] = columns.gamma[k];
      own[op.cols + k] = columns.beta[k];
    }
  }

  /// add_row(), with the sums in memory.
  __device__ void add_row_in_memory(std::int64_t i, RowSums& row, bool is_first) const {
    const float* const own = op.sums + std::int64_t{blockIdx.x} * 2 * op.cols + column;
    ColumnSums<kWidth> columns;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      columns.gamma[k] = is_first ? 0.0F : own[k];
      columns.beta[k] = is_first ? 0.0F : own[op.cols + k];
    }
    add_row(i, row, columns);
    store_sums(columns);
  }
};

/// @tparam kPacks  of columns whose sums a thread keeps; those of wider rows are in memory
template <class T, int kWidth, int kPacks>
__global__ void __launch_bounds__(kMostThreads) backward_kernel(Backward<T> op) {
  const auto n = static_cast<float>(op.cols);
  const auto columns = [&](int p) {
    return Columns<T, kWidth>{op, (std::int64_t{p} * blockDim.x + threadIdx.x) * kWidth};
  };
  ColumnSums<kWidth> sums[kPacks];
  for (std::int64_t i = blockIdx.x; i < op.rows; i += gridDim.x) {
    RowSums row;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (columns(p).column < op.cols) columns(p).add_row(i, row, sums[p]);
    }
    for (int p = kPacks; columns(p).column < op.cols; ++p) {
      columns(p).add_row_in_memory(i, row, i == blockIdx.x);
    }
    const RowSums means{sum_of_block(row.g) / n, sum_of_block(row.g_xhat) / n};
    for (int p = 0; columns(p).column < op.cols; ++p) columns(p).store_row(i, means);
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (columns(p).column < op.cols) columns(p).store_sums(sums[p]);
  }
}

/// A lane for each column of (blocks, 2, cols); each warp takes some of the blocks.
template <class T>
__global__ void add_blocks(const float* sums, std::int64_t blocks, std::int64_t cols, T* d_gamma,
                           T* d_beta) {
  __shared__ float of_warps[kMostWarps][kWarp];
  const std::int64_t warps = blockDim.x / kWarp;
  const std::int64_t warp = threadIdx.x / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
  float sum = 0;
  if (column < 2 * cols) {
#pragma unroll 4
    for (std::int64_t i = warp; i < blocks; i += warps) sum += sums[i * 2 * cols + column];
  }
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= 2 * cols) return;
  for (std::int64_t w = 1; w < warps; ++w) sum += of_warps[w][lane];
  T& out = column < cols ? d_gamma[column] : d_beta[column - cols];
  out = from_float<T>(sum);
}

/// @returns the number of blocks
template <class T, int kWidth, int kPacks>
std::int64_t queue_rows(cudaStream_t stream, const Backward<T>& op, int multiprocessors) {
  const int threads = threads_for_row(op.cols / kWidth, kPacks, kMostThreads);
  const std::int64_t wanted = std::int64_t{multiprocessors} * kWantedThreads / threads;
  const std::int64_t fitting =
      static_cast<std::int64_t>(Gpu::kScratch / sizeof(float)) / (2 * op.cols);
  const std::int64_t blocks = std::min({op.rows, wanted, fitting});
  launch(stream, {blocks, threads}, backward_kernel<T, kWidth, kPacks>, op);
  return blocks;
}

/// Launches with as few sums in a thread's registers as the row allows.
template <class T, int kWidth>
std::int64_t queue_rows(cudaStream_t stream, const Backward<T>& op, int multiprocessors) {
  constexpr std::int64_t kPerPack = std::int64_t{kMostThreads} * kWidth;  // columns
  if constexpr (kWidth > 1) {
    if (op.cols <= kPerPack) return queue_rows<T, kWidth, 1>(stream, op, multiprocessors);
    if (op.cols <= 2 * kPerPack) return queue_rows<T, kWidth, 2>(stream, op, multiprocessors);
  }
  return queue_rows<T, kWidth, 4>(stream, op, multiprocessors);
}

}  // namespace

void CudaDevice::compute(const LayerNormBackward& op) {
  assert(op.x.rows == op.d_out.rows && op.x.cols == op.d_out.cols);
  assert(op.gamma.numel == op.x.cols && op.gamma.dtype == op.x.dtype);
  assert(op.d_out.dtype == op.x.dtype && op.d_x.dtype == op.x.dtype);
  assert(op.d_gamma.dtype == op.x.dtype && op.d_beta.dtype == op.x.dtype);
  auto* const sums = scratch<float>();
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const Backward<T> backward{rows_of<const T>(op.d_out),
                               rows_of<const T>(op.x),
                               elements<const T>(op.gamma),
                               elements<float>(op.saved.mean),
                               elements<float>(op.saved.rstd),
                               rows_of<T>(op.d_x),
                               sums,
                               op.x.rows,
                               op.x.cols};
    with_row_width<T>({op.d_out, op.x, op.d_x, as_row(op.gamma)}, [&](auto width) {
      const std::int64_t blocks = queue_rows<T, width>(stream(), backward, gpu_.multiprocessors());
      launch(
          stream(), {(2 * op.x.cols + kWarp - 1) / kWarp, threads_for_row(blocks, 1, kMostThreads)},
          add_blocks<T>, sums, blocks, op.x.cols, elements<T>(op.d_gamma), elements<T>(op.d_beta));
    });
  });
}

}  // namespace dstune::cuda
