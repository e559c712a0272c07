// One block per row, which is read twice, the second time from the caches.
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
