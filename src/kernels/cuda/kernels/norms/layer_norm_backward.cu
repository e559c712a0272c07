// Two passes, as PyTorch's (layer_norm_grad_input_kernel_vectorized and
// GammaBetaBackwardCUDAKernelTemplate in ATen/native/cuda/layer_norm_kernel.cu): a block of four
// warps for each row's d_x; then a block for 32 columns of the weights' gradients, which reads all
// rows again.
#include <algorithm>
#include <cassert>

#include "core/device/operations/norms.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kRowThreads = 128;
constexpr int kColumns = 4;  // that a thread takes together
constexpr int kColumnThreads = kWarp * kMostWarps;
constexpr int kRowsInFlight = 8;  // that a warp reads before it adds
constexpr int kTileRows = kRowsInFlight * kMostWarps;

template <class T>
struct Backward {
  RowsOf<const T> d_out;
  RowsOf<const T> x;
  const T* gamma;
  const float* mean;
  const float* rstd;
  RowsOf<T> d_x;
  std::int64_t rows;
  std::int64_t cols;
};

/// d_out gamma, and xhat, of a pack of a row's columns.
template <int kWidth>
struct Terms {
  float g[kWidth];
  float xhat[kWidth];

  template <class T>
  __device__ Terms(const T* d_out, const T* x, const T* gamma, float mean, float rstd) {
    const auto of_out = load_pack<kWidth>(d_out);
    const auto of_x = load_pack<kWidth>(x);
    const auto of_gamma = load_pack<kWidth>(gamma);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      g[k] = to_float(of_out.values[k]) * to_float(of_gamma.values[k]);
      xhat[k] = (to_float(of_x.values[k]) - mean) * rstd;
    }
  }
};

// As forward's, the loops are not unrolled.
template <class T, int kWidth>
__global__ void __launch_bounds__(kRowThreads) rows_kernel(Backward<T> op) {
  const T* const d_out = op.d_out[blockIdx.x];
  const T* const x = op.x[blockIdx.x];
  T* const d_x = op.d_x[blockIdx.x];
  const float mean = op.mean[blockIdx.x];
  const float rstd = op.rstd[blockIdx.x];
  const auto cols = static_cast<unsigned>(op.cols);
  constexpr int kStep = kRowThreads * kWidth;
  const unsigned first = threadIdx.x * kWidth;
  float g = 0;
  float g_xhat = 0;
#pragma unroll 1
  for (unsigned column = first; column < cols; column += kStep) {
    const Terms<kWidth> terms(d_out + column, x + column, op.gamma + column, mean, rstd);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      g += terms.g[k];
      g_xhat += terms.g[k] * terms.xhat[k];
    }
  }
  const float share = 1.0F / static_cast<float>(cols);
  const float mean_g = sum_of_block(g) * share;
  const float mean_g_xhat = sum_of_block(g_xhat) * share;
#pragma unroll 1
  for (unsigned column = first; column < cols; column += kStep) {
    const Terms<kWidth> terms(d_out + column, x + column, op.gamma + column, mean, rstd);
    Pack<T, kWidth> pack;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] = from_float<T>(rstd * (terms.g[k] - mean_g - terms.xhat[k] * mean_g_xhat));
    }
    store_pack(d_x + column, pack);
  }
}

/// Of a column over some rows: what gamma and beta get.
struct Sums {
  float gamma = 0;
  float beta = 0;
};

/// Adds a warp's rows of a tile, from `first` on, to the sums of a lane's column; if not kAll,
/// those before `end`. All lanes must call it.
template <bool kAll, class T>
__device__ inline void add_rows(const Backward<T>& op, std::int64_t first, std::int64_t end,
                                std::int64_t column, Sums& sums) {
  const unsigned lane = threadIdx.x % kWarp;
  float mean = 0;  // of the lane's row
  float rstd = 0;
  if (lane < kRowsInFlight && (kAll || first + lane < end)) {
    mean = op.mean[first + lane];
    rstd = op.rstd[first + lane];
  }
  const T* const d_out = op.d_out[first] + column;
  const T* const x = op.x[first] + column;
  T d_values[kRowsInFlight];
  T x_values[kRowsInFlight];
#pragma unroll
  for (int k = 0; k < kRowsInFlight; ++k) {
    const bool has = kAll || first + k < end;
    d_values[k] = has ? d_out[k * op.d_out.stride] : from_float<T>(0);
    x_values[k] = has ? x[k * op.x.stride] : from_float<T>(0);
  }
#pragma unroll
  for (int k = 0; k < kRowsInFlight; ++k) {
    const float d = to_float(d_values[k]);
    const float difference = to_float(x_values[k]) - __shfl_sync(0xffffffffU, mean, k);
    sums.gamma += d * difference * __shfl_sync(0xffffffffU, rstd, k);
    sums.beta += d;
  }
}

/// A block's part of the rows: `count` of them side by side, gridDim.x / count blocks of columns.
struct Parts {
  int count = 1;
  std::int64_t rows = 0;  ///< of each; the last may have fewer
  float* sums = nullptr;  ///< where there are several: of gamma's and beta's, (count, 2, cols)
};

/// Lanes are columns, warps take turns with the rows of a tile.
/// @tparam kWhole  every part is whole tiles
template <class T, bool kWhole>
__global__ void __launch_bounds__(kColumnThreads)
    columns_kernel(Backward<T> op, Parts parts, T* d_gamma, T* d_beta) {
  __shared__ float of_warps[2][kMostWarps][kWarp];
  const unsigned part = blockIdx.x % parts.count;
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  const std::int64_t column = std::int64_t{blockIdx.x / parts.count} * kWarp + lane;
  const std::int64_t read = min(column, op.cols - 1);  // a lane without a column reads another's
  const std::int64_t end = min((part + 1) * parts.rows, op.rows);
  Sums sums;
  for (std::int64_t tile = part * parts.rows; tile < end; tile += kTileRows) {
    const std::int64_t first = tile + warp * kRowsInFlight;
    if (kWhole || tile + kTileRows <= end) {
      add_rows<true>(op, first, end, read, sums);
    } else {
      add_rows<false>(op, first, end, read, sums);
    }
  }
  of_warps[0][warp][lane] = sums.gamma;
  of_warps[1][warp][lane] = sums.beta;
  __syncthreads();
  if (warp > 1 || column >= op.cols) return;
  float sum = 0;
  for (int w = 0; w < kMostWarps; ++w) sum += of_warps[warp][w][lane];
  if (parts.count > 1) {
    parts.sums[(part * 2 + warp) * op.cols + column] = sum;
  } else {
    (warp == 0 ? d_gamma : d_beta)[column] = from_float<T>(sum);
  }
}

/// A thread for each column of (parts, 2, cols).
template <class T>
__global__ void add_parts(Parts parts, std::int64_t cols, T* d_gamma, T* d_beta) {
  const std::int64_t column = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= 2 * cols) return;
  float sum = 0;
  for (int p = 0; p < parts.count; ++p) sum += parts.sums[p * 2 * cols + column];
  T& out = column < cols ? d_gamma[column] : d_beta[column - cols];
  out = from_float<T>(sum);
}

/// As PyTorch, one, unless the rows are many and the columns leave half of the GPU idle.
Parts parts_of(std::int64_t rows, std::int64_t cols, int multiprocessors, float* sums) {
  constexpr std::int64_t kMany = 64 << 10;
  const std::int64_t blocks = (cols + kWarp - 1) / kWarp;
  if (rows <= kMany || 2 * blocks >= multiprocessors) return {1, rows, nullptr};
  const auto fitting = static_cast<std::int64_t>(Gpu::kScratch / sizeof(float)) / (2 * cols);
  const std::int64_t count =
      std::min({(rows + kWarp - 1) / kWarp, 4 * multiprocessors / blocks + 1, fitting});
  return {static_cast<int>(count), (rows + count - 1) / count, sums};
}

}  // namespace

void CudaDevice::compute(const LayerNormBackward& op) {
  assert(op.x.rows == op.d_out.rows && op.x.cols == op.d_out.cols);
  assert(op.gamma.numel == op.x.cols && op.gamma.dtype == op.x.dtype);
  assert(op.d_out.dtype == op.x.dtype && op.d_x.dtype == op.x.dtype);
  assert(op.d_gamma.dtype == op.x.dtype && op.d_beta.dtype == op.x.dtype);
  const Parts parts = parts_of(op.x.rows, op.x.cols, gpu_.multiprocessors(), scratch<float>());
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const Backward<T> backward{rows_of<const T>(op.d_out),
                               rows_of<const T>(op.x),
                               elements<const T>(op.gamma),
                               elements<float>(op.saved.mean),
                               elements<float>(op.saved.rstd),
                               rows_of<T>(op.d_x),
                               op.x.rows,
                               op.x.cols};
    T* const d_gamma = elements<T>(op.d_gamma);
    T* const d_beta = elements<T>(op.d_beta);
    // Before d_x, which may be d_out.
    const std::int64_t blocks = (op.x.cols + kWarp - 1) / kWarp;
    const bool whole = op.x.rows % kTileRows == 0 && parts.rows % kTileRows == 0;
    launch(stream(), {blocks * parts.count, kColumnThreads},
           whole ? columns_kernel<T, true> : columns_kernel<T, false>, backward, parts, d_gamma,
           d_beta);
    if (parts.count > 1) {
      launch(stream(), cover(2 * op.x.cols, kRowThreads), add_parts<T>, parts, op.x.cols, d_gamma,
             d_beta);
    }
    with_row_width<T, kColumns>({op.d_out, op.x, op.d_x, as_row(op.gamma)}, [&](auto width) {
      launch(stream(), {op.x.rows, kRowThreads}, rows_kernel<T, width>, backward);
    });
  });
}

}  // namespace dstune::cuda
