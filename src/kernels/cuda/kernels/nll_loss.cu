#include <cassert>

#include "core/device/operations/nll_loss.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kPerThread = 2;  // rows, before the block becomes larger

struct NextToken {
  const std::int64_t* tokens;
  std::int64_t sequence;

  __device__ void operator()(std::int64_t i, std::int64_t& label) const {
    label = (i + 1) % sequence == 0 ? -1 : tokens[i + 1];
  }
};

/// Of the rows that a loss is the mean of.
struct Rows {
  const std::int64_t* labels;
  std::int64_t count;

  /// f(row, label) for the counted rows of this thread; how many the block has.
  template <class F>
  __device__ int for_counted(F f) const {
    int own = 0;
    for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      const std::int64_t label = labels[i];
      if (label < 0) continue;
      f(i, label);
      ++own;
    }
    return sum_of_block(own);
  }
};

// One block, so that the sum has one order.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    loss_kernel(Rows rows, RowsOf<const T> log_probs, double factor, float* sum) {
  double own = 0;
  const int counted = rows.for_counted([&](std::int64_t i, std::int64_t label) {
    own -= static_cast<double>(to_float(log_probs[i][label]));
  });
  const double total = sum_of_block(own);
  if (threadIdx.x == 0 && counted > 0) *sum += static_cast<float>(factor * total / counted);
}

// All of `out` is 0.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    loss_backward_kernel(Rows rows, double loss_scale, RowsOf<T> out) {
  const int counted = rows.for_counted([](std::int64_t, std::int64_t) {});
  const T value = from_float<T>(static_cast<float>(-loss_scale / max(counted, 1)));
  rows.for_counted([&](std::int64_t i, std::int64_t label) { out[i][label] = value; });
}

Grid one_block(std::int64_t rows) { return {1, threads_for_row(rows, kPerThread, kMostThreads)}; }

}  // namespace

void CudaDevice::compute(const NextTokens& op) {
  assert(op.tokens.dtype == DType::int64 && op.labels.dtype == DType::int64);
  assert(op.tokens.numel == op.labels.numel && op.tokens.numel % op.sequence == 0);
  for_each_element(stream(), op.labels.numel,
                   NextToken{elements<const std::int64_t>(op.tokens), op.sequence},
                   Out<std::int64_t>{elements<std::int64_t>(op.labels)});
}

void CudaDevice::compute(const NllLoss& op) {
  assert(op.labels.numel == op.log_probs.rows);
  with_type(op.log_probs.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), one_block(op.labels.numel), loss_kernel<T>,
           Rows{elements<const std::int64_t>(op.labels), op.labels.numel},
           rows_of<const T>(op.log_probs), op.factor, elements<float>(op.sum));
  });
}

void CudaDevice::compute(const NllLossBackward& op) {
  assert(op.labels.numel == op.out.rows);
  assert(op.out.stride == op.out.cols);
  DSTUNE_CUDA_CHECK(cudaMemsetAsync(op.out.data, 0, op.out.size(), stream()));
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), one_block(op.labels.numel), loss_backward_kernel<T>,
           Rows{elements<const std::int64_t>(op.labels), op.labels.numel}, op.loss_scale,
           rows_of<T>(op.out));
  });
}

}  // namespace dstune::cuda
