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

/// d_out gamma, and xhat, of a pack of columns.
template <class T, int kWidth>
struct Terms {
  float g[kWidth];
  float xhat[kWidth];

  __device__ Terms(const Backward<T>& op, std::int64_t i, std::int64_t column) {
    const auto d_out = load_pack<kWidth>(op.d_out[i] + column);
    const auto x = load_pack<kWidth>(op.x[i] + column);
    const auto gamma = load_pack<kWidth>(op.gamma + column);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      g[k] = to_float(d_out.values[k]) * to_float(gamma.values[k]);
      xhat[k] = (to_float(x.values[k]) - op.mean[i]) * op.rstd[i];
    }
  }
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kRowThreads) rows_kernel(Backward<T> op) {
  const std::int64_t i = blockIdx.x;
  const auto n = static_cast<float>(op.cols);
  constexpr int kStep = kRowThreads * kWidth;
  const auto first = static_cast<std::int64_t>(threadIdx.x) * kWidth;
  float g = 0;
  float g_xhat = 0;
  for (std::int64_t column = first; column < op.cols; column += kStep) {
    const Terms<T, kWidth> terms(op, i, column);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      g += terms.g[k];
      g_xhat += terms.g[k] * terms.xhat[k];
    }
  }
  const float mean_g = sum_of_block(g) / n;
  const float mean_g_xhat = sum_of_block(g_xhat) / n;
  for (std::int64_t column = first; column < op.cols; column += kStep) {
    const Terms<T, kWidth> terms(op, i, column);
    Pack<T, kWidth> d_x;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      d_x.values[k] =
          from_float<T>(op.rstd[i] * (terms.g[k] - mean_g - terms.xhat[k] * mean_g_xhat));
    }
    store_pack(op.d_x[i] + column, d_x);
  }
}

/// A block's part of the rows: `parts` of them side by side, gridDim.x / parts blocks of columns.
struct Parts {
  std::int64_t count = 1;
  float* sums = nullptr;  ///< where there are several: of gamma's and beta's, (count, 2, cols)
};

/// Lanes are columns, warps take turns with the rows.
template <class T>
__global__ void __launch_bounds__(kColumnThreads)
    columns_kernel(Backward<T> op, Parts parts, T* d_gamma, T* d_beta) {
  __shared__ float of_warps[2][kMostWarps][kWarp];
  const std::int64_t part = blockIdx.x % parts.count;
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned warp = threadIdx.x / kWarp;
  const std::int64_t column = blockIdx.x / parts.count * kWarp + lane;
  const std::int64_t rows = (op.rows + parts.count - 1) / parts.count;
  const std::int64_t end = min((part + 1) * rows, op.rows);
  float gamma = 0;
  float beta = 0;
  if (column < op.cols) {
    for (std::int64_t i = part * rows + warp; i < end; i += kRowsInFlight * kMostWarps) {
      T d[kRowsInFlight];
      T x[kRowsInFlight];
#pragma unroll
      for (int k = 0; k < kRowsInFlight; ++k) {
        const std::int64_t row = i + k * kMostWarps;
        if (row >= end) continue;
        d[k] = op.d_out[row][column];
        x[k] = op.x[row][column];
      }
#pragma unroll
      for (int k = 0; k < kRowsInFlight; ++k) {
        const std::int64_t row = i + k * kMostWarps;
        if (row >= end) continue;
        gamma += to_float(d[k]) * (to_float(x[k]) - op.mean[row]) * op.rstd[row];
        beta += to_float(d[k]);
      }
    }
  }
  of_warps[0][warp][lane] = gamma;
  of_warps[1][warp][lane] = beta;
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
  for (std::int64_t p = 0; p < parts.count; ++p) sum += parts.sums[p * 2 * cols + column];
  T& out = column < cols ? d_gamma[column] : d_beta[column - cols];
  out = from_float<T>(sum);
}

/// PyTorch's: one, unless the rows are many and the columns leave half of the GPU idle.
std::int64_t parts_of(std::int64_t rows, std::int64_t cols, int multiprocessors) {
  constexpr std::int64_t kMany = 64 << 10;
  const std::int64_t blocks = (cols + kWarp - 1) / kWarp;
  if (rows <= kMany || 2 * blocks >= multiprocessors) return 1;
  const auto fitting = static_cast<std::int64_t>(Gpu::kScratch / sizeof(float)) / (2 * cols);
  return std::min({(rows + kWarp - 1) / kWarp, 4 * multiprocessors / blocks + 1, fitting});
}

}  // namespace

void CudaDevice::compute(const LayerNormBackward& op) {
  assert(op.x.rows == op.d_out.rows && op.x.cols == op.d_out.cols);
  assert(op.gamma.numel == op.x.cols && op.gamma.dtype == op.x.dtype);
  assert(op.d_out.dtype == op.x.dtype && op.d_x.dtype == op.x.dtype);
  assert(op.d_gamma.dtype == op.x.dtype && op.d_beta.dtype == op.x.dtype);
  const Parts parts{parts_of(op.x.rows, op.x.cols, gpu_.multiprocessors()), scratch<float>()};
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
    launch(stream(), {blocks * parts.count, kColumnThreads}, columns_kernel<T>, backward, parts,
           d_gamma, d_beta);
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
