// Sums in one order: a block adds up what one expert gets.
#include <cassert>

#include "core/device/operations/router_balance.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_routing_kernel(RowsOf<const T> probs, std::int64_t rows, const std::int64_t* experts,
                       std::int64_t pairs, float* counts, float* sums) {
  float count = 0;
  for (std::int64_t i = threadIdx.x; i < pairs; i += blockDim.x) {
    if (experts[i] == blockIdx.x) ++count;
  }
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
    sum += to_float(probs[i][blockIdx.x]);
  }
  count = sum_of_block(count);
  sum = sum_of_block(sum);
  if (threadIdx.x != 0) return;
  counts[blockIdx.x] += count;
  sums[blockIdx.x] += sum;
}

struct CountTimesSum {
  const float* counts;
  const float* sums;

  __device__ double operator()(std::int64_t expert) const {
    return static_cast<double>(counts[expert]) * static_cast<double>(sums[expert]);
  }
};

struct OfColumn {
  const float* counts;
  std::int64_t experts;
  float factor;

  __device__ void operator()(std::int64_t i, float& d) const {
    d = factor * counts[i - quotient(i, experts) * experts];
  }
};

double square(std::int64_t x) { return static_cast<double>(x) * static_cast<double>(x); }

}  // namespace

void CudaDevice::compute(const AddRouting& op) {
  assert(op.counts.numel == op.probs.cols && op.sums.numel == op.probs.cols);
  with_type(op.probs.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), {op.probs.cols, kThreads}, add_routing_kernel<T>, rows_of<const T>(op.probs),
           op.probs.rows, elements<const std::int64_t>(op.experts), op.experts.numel,
           elements<float>(op.counts), elements<float>(op.sums));
  });
}

void CudaDevice::compute(const BalanceLoss& op) {
  const double factor = op.factor * static_cast<double>(op.counts.numel) / square(op.rows);
  queue_sum(stream(kReductionLaunches), scratch<void>(), op.counts.numel,
            CountTimesSum{elements<const float>(op.counts), elements<const float>(op.sums)}, factor,
            elements<float>(op.loss));
}

void CudaDevice::compute(const BalanceLossBackward& op) {
  assert(op.d_probs.cols == op.counts.numel && op.d_probs.stride == op.d_probs.cols);
  const double factor = op.factor * static_cast<double>(op.counts.numel) / square(op.rows);
  with_type(op.d_probs.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(
        stream(), op.d_probs.numel(),
        OfColumn{elements<const float>(op.counts), op.counts.numel, static_cast<float>(factor)},
        Out<T>{elements<T>(op.d_probs)});
  });
}

}  // namespace dstune::cuda
