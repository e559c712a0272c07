// Rows of up to 2048 columns are read once, a warp for each, as PyTorch 2.10's (host_softmax in
// ATen/native/cuda/SoftMax.cu; earlier ones up to 1024); longer ones by a block, again from the
// caches.
#include <cassert>
#include <cmath>

#include "core/device/operations/softmax.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kPerThread = 4;  // columns of a row, before a block becomes larger

constexpr std::int64_t kMostOfWarp = 2048;  // columns
constexpr int kWarpsOfBlock = 4;

/// @tparam kPerLane  columns that a lane keeps, each a warp apart
template <class In, class Out, int kPerLane>
__global__ void __launch_bounds__(kWarpsOfBlock* kWarp)
    softmax_of_warp(RowsOf<const In> scores, RowsOf<Out> probs, std::int64_t rows, int cols) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarpsOfBlock + threadIdx.x / kWarp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  float x[kPerLane];
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int column = lane + k * kWarp;
    x[k] = column < cols ? to_float(scores[row][column]) : -INFINITY;
  }
  float largest = x[0];
#pragma unroll
  for (int k = 1; k < kPerLane; ++k) largest = fmaxf(largest, x[k]);
  largest = largest_of_warp(largest);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) sum += x[k] = __expf(x[k] - largest);
  sum = sum_of_warp(sum);
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int column = lane + k * kWarp;
    if (column < cols) probs[row][column] = from_float<Out>(x[k] / sum);
  }
}

template <class In, class Out, int kPerLane = 4>
void queue_warps(cudaStream_t stream, const Softmax& op) {
  if constexpr (kPerLane * kWarp < kMostOfWarp) {
    if (op.probs.cols > kPerLane * kWarp) return queue_warps<In, Out, 2 * kPerLane>(stream, op);
  }
  launch(stream, cover(op.probs.rows * kWarp, kWarpsOfBlock * kWarp),
         softmax_of_warp<In, Out, kPerLane>, rows_of<const In>(op.scores), rows_of<Out>(op.probs),
         op.probs.rows, static_cast<int>(op.probs.cols));
}

template <class In, class Out>
__global__ void __launch_bounds__(kMostThreads)
    softmax_kernel(RowsOf<const In> scores, RowsOf<Out> probs, std::int64_t cols) {
  const In* const x = scores[blockIdx.x];
  Out* const y = probs[blockIdx.x];
  float largest = -INFINITY;
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    largest = fmaxf(largest, to_float(x[j]));
  }
  largest = largest_of_block(largest, -INFINITY);
  float sum = 0;
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    sum += __expf(to_float(x[j]) - largest);
  }
  const float factor = 1 / sum_of_block(sum);
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    y[j] = from_float<Out>(__expf(to_float(x[j]) - largest) * factor);
  }
}

template <class In, class Out>
__global__ void __launch_bounds__(kMostThreads)
    softmax_backward_kernel(RowsOf<const In> d_probs, RowsOf<const In> probs, RowsOf<Out> d_scores,
                            std::int64_t cols) {
  const In* const d = d_probs[blockIdx.x];
  const In* const p = probs[blockIdx.x];
  Out* const result = d_scores[blockIdx.x];
  float own = 0;
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    own += to_float(d[j]) * to_float(p[j]);
  }
  const float sum = sum_of_block(own);
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    result[j] = from_float<Out>(to_float(p[j]) * (to_float(d[j]) - sum));
  }
}

Grid block_per_row(const Matrix& matrix) {
  return {matrix.rows, threads_for_row(matrix.cols, kPerThread, kMostThreads)};
}

}  // namespace

void CudaDevice::compute(const Softmax& op) {
  assert(op.scores.rows == op.probs.rows && op.scores.cols == op.probs.cols);
  with_type(op.scores.dtype, [&]<class In>(std::type_identity<In>) {
    with_type(op.probs.dtype, [&]<class Out>(std::type_identity<Out>) {
      if (op.probs.cols <= kMostOfWarp) return queue_warps<In, Out>(stream(), op);
      launch(stream(), block_per_row(op.probs), softmax_kernel<In, Out>,
             rows_of<const In>(op.scores), rows_of<Out>(op.probs), op.probs.cols);
    });
  });
}

void CudaDevice::compute(const SoftmaxBackward& op) {
  assert(op.d_probs.dtype == op.probs.dtype && op.d_probs.rows == op.probs.rows);
  assert(op.d_scores.rows == op.probs.rows && op.d_scores.cols == op.probs.cols);
  with_type(op.probs.dtype, [&]<class In>(std::type_identity<In>) {
    with_type(op.d_scores.dtype, [&]<class Out>(std::type_identity<Out>) {
      launch(stream(), block_per_row(op.probs), softmax_backward_kernel<In, Out>,
             rows_of<const In>(op.d_probs), rows_of<const In>(op.probs), rows_of<Out>(op.d_scores),
             op.probs.cols);
    });
  });
}

}  // namespace dstune::cuda
