// One block per row. A row of 50257 logits does not fit into registers: it is read twice, the
// second time from the caches, and from its end, which was read last.
#include <cassert>
#include <cmath>

#include "core/device/operations/softmax.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/any_rows.cuh"
#include "kernels/cuda/kernels/exp_sum.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kPerThread = 16;  // columns of a row, before a block becomes larger

template <class T, int kWidth>
__global__ void __launch_bounds__(kMostThreads)
    log_softmax_kernel(RowsOf<const T> logits, RowsOf<T> log_probs, std::int64_t cols) {
  const T* const x = logits[blockIdx.x];
  T* const y = log_probs[blockIdx.x];
  const AnyRow<kWidth> row(x, cols);
  ExpSum own;
  row.forward([&](auto width, std::int64_t column) { own.add(load_pack<width>(x + column)); });
  const ExpSum all = own.of_block();
  const float log_sum = logf(all.sum);
  row.backward([&](auto width, std::int64_t column) {
    auto pack = load_pack<width>(x + column);
#pragma unroll
    for (T& value : pack.values) value = from_float<T>(to_float(value) - all.largest - log_sum);
    store_pack(y + column, pack);
  });
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kMostThreads)
    log_softmax_backward_kernel(RowsOf<const T> d_log_probs, RowsOf<const T> log_probs,
                                RowsOf<T> d_logits, std::int64_t cols) {
  const T* const d = d_log_probs[blockIdx.x];
  const T* const y = log_probs[blockIdx.x];
  T* const result = d_logits[blockIdx.x];
  const AnyRow<kWidth> row(d, cols);
  float own = 0;
  row.forward([&](auto width, std::int64_t column) {
    for (const T value : load_pack<width>(d + column).values) own += to_float(value);
  });
  const float sum = sum_of_block(own);
  row.backward([&](auto width, std::int64_t column) {
    auto pack = load_pack<width>(d + column);
    const auto log_p = load_pack<width>(y + column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float p = __expf(to_float(log_p.values[k]));
      pack.values[k] = from_float<T>(to_float(pack.values[k]) - p * sum);
    }
    store_pack(result + column, pack);
  });
}

Grid block_per_row(const Matrix& matrix) {
  return {matrix.rows, threads_for_row(matrix.cols, kPerThread, kMostThreads)};
}

}  // namespace

void CudaDevice::compute(const LogSoftmax& op) {
  const Matrix& logits = op.logits;
  assert(logits.dtype == op.log_probs.dtype);
  assert(logits.rows == op.log_probs.rows && logits.cols == op.log_probs.cols);
  with_type(logits.dtype, [&]<class T>(std::type_identity<T>) {
    with_any_row_width<T>({logits, op.log_probs}, [&](auto width) {
      launch(stream(), block_per_row(logits), log_softmax_kernel<T, width>,
             rows_of<const T>(logits), rows_of<T>(op.log_probs), logits.cols);
    });
  });
}

void CudaDevice::compute(const LogSoftmaxBackward& op) {
  const Matrix& d_logits = op.d_logits;
  assert(op.log_probs.dtype == d_logits.dtype && op.d_log_probs.dtype == d_logits.dtype);
  assert(op.d_log_probs.rows == d_logits.rows && op.d_log_probs.cols == d_logits.cols);
  with_type(d_logits.dtype, [&]<class T>(std::type_identity<T>) {
    with_any_row_width<T>({op.d_log_probs, op.log_probs, d_logits}, [&](auto width) {
      launch(stream(), block_per_row(d_logits), log_softmax_backward_kernel<T, width>,
             rows_of<const T>(op.d_log_probs), rows_of<const T>(op.log_probs), rows_of<T>(d_logits),
             d_logits.cols);
    });
  });
}

}  // namespace dstune::cuda
