// Sums in one order: a block adds up what one expert gets.
#include <cassert>

#include "core/device/operations/router_balance.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

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

__global__ void __launch_bounds__(kThreads)
    balance_loss_kernel(const float* counts, const float* sums, std::int64_t experts, double factor,
                        float* loss) {
  double own = 0;
  for (std::int64_t e = threadIdx.x; e < experts; e += blockDim.x) {
    own += static_cast<double>(counts[e]) * static_cast<double>(sums[e]);
  }
  const double sum = sum_of_block(own);
  if (threadIdx.x == 0) *loss += static_cast<float>(factor * sum);
}

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
  launch(stream(), {1, kThreads}, balance_loss_kernel, elements<const float>(op.counts),
         elements<const float>(op.sums), op.counts.numel, factor, elements<float>(op.loss));
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
