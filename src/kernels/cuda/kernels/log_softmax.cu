// One block per row. A row of 50257 logits does not fit into registers: it is read twice, the
// second time from the caches, and from its end, which was read last.
#include <cassert>
#include <cmath>

#include "core/device/operations/log_softmax.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/any_rows.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kPerThread = 16;  // columns of a row, before a block becomes larger

/// The sum of exponentials of some values, relative to the largest.
struct ExpSum {
  float largest = -INFINITY;
  float sum = 0;

  template <int kCount>
  __device__ void add(const Pack<float, kCount>& x) {
    float now = largest;
#pragma unroll
    for (int k = 0; k < kCount; ++k) now = fmaxf(now, x.values[k]);
    const float base = finite(now);
    sum *= __expf(largest - base);
    largest = now;
#pragma unroll
    for (int k = 0; k < kCount; ++k) sum += __expf(x.values[k] - base);
  }

  /// Of all threads.
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

template <int kWidth>
__global__ void __launch_bounds__(kMostThreads)
    log_softmax_kernel(RowsOf<const float> logits, RowsOf<float> log_probs, std::int64_t cols) {
  const float* const x = logits[blockIdx.x];
  float* const y = log_probs[blockIdx.x];
  const AnyRow<kWidth> row(x, cols);
  ExpSum own;
  row.forward([&](auto width, std::int64_t column) { own.add(load_pack<width>(x + column)); });
  const ExpSum all = own.of_block();
  const float log_sum = logf(all.sum);
  row.backward([&](auto width, std::int64_t column) {
    auto pack = load_pack<width>(x + column);
#pragma unroll
    for (float& value : pack.values) value = value - all.largest - log_sum;
    store_pack(y + column, pack);
  });
}

template <int kWidth>
__global__ void __launch_bounds__(kMostThreads)
    log_softmax_backward_kernel(RowsOf<const float> d_log_probs, RowsOf<const float> log_probs,
                                RowsOf<float> d_logits, std::int64_t cols) {
  const float* const d = d_log_probs[blockIdx.x];
  const float* const y = log_probs[blockIdx.x];
  float* const result = d_logits[blockIdx.x];
  const AnyRow<kWidth> row(d, cols);
  float own = 0;
  row.forward([&](auto width, std::int64_t column) {
    for (const float value : load_pack<width>(d + column).values) own += value;
  });
  const float sum = sum_of_block(own);
  row.backward([&](auto width, std::int64_t column) {
    auto pack = load_pack<width>(d + column);
    const auto log_p = load_pack<width>(y + column);
#pragma unroll
    for (int k = 0; k < width; ++k) pack.values[k] -= __expf(log_p.values[k]) * sum;
    store_pack(result + column, pack);
  });
}

Grid block_per_row(const Matrix& matrix) {
  return {matrix.rows, threads_for_row(matrix.cols, kPerThread, kMostThreads)};
}

}  // namespace

void CudaDevice::compute(const LogSoftmax& op) {
  const Matrix& logits = op.logits;
  assert(logits.dtype == DType::fp32 && op.log_probs.dtype == DType::fp32);
  assert(logits.rows == op.log_probs.rows && logits.cols == op.log_probs.cols);
  with_any_row_width({logits, op.log_probs}, [&](auto width) {
    launch(stream(), block_per_row(logits), log_softmax_kernel<width>, rows_of<const float>(logits),
           rows_of<float>(op.log_probs), logits.cols);
  });
}

void CudaDevice::compute(const LogSoftmaxBackward& op) {
  const Matrix& d_logits = op.d_logits;
  assert(op.log_probs.dtype == DType::fp32 && d_logits.dtype == DType::fp32);
  assert(op.d_log_probs.rows == d_logits.rows && op.d_log_probs.cols == d_logits.cols);
  with_any_row_width({op.d_log_probs, op.log_probs, d_logits}, [&](auto width) {
    launch(stream(), block_per_row(d_logits), log_softmax_backward_kernel<width>,
           rows_of<const float>(op.d_log_probs), rows_of<const float>(op.log_probs),
           rows_of<float>(d_logits), d_logits.cols);
  });
}

}  // namespace dstune::cuda
