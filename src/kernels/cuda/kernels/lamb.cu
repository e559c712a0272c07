#include <cassert>
#include <cmath>

#include "core/device/operations/lamb.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

namespace {

constexpr std::int64_t kMostBlocks = 2048;
constexpr int kRateThreads = 256;

__device__ float update_of(const LambCoefficients& c, float m, float v, float p) {
  const float root = sqrtf(v * c.inverse_bias2 + c.inner_epsilon) + c.outer_epsilon;
  return m * c.inverse_bias1 / root + c.decay * p;
}

struct SquareSums {
  double parameter;
  double update;
};

/// partials[b]: of what block b has seen.
struct Moments {
  LambCoefficients c;
  SquareSums* partials;
  SquareSums sums;

  __device__ void operator()(std::int64_t, float g, float p, float& m, float& v) {
    const float gradient = g * c.unscale;
    m = c.beta1 * m + c.rest1 * gradient;
    v = c.beta2 * v + c.rest2 * gradient * gradient;
    const auto update = static_cast<double>(update_of(c, m, v, p));
    sums.update += update * update;
    sums.parameter += static_cast<double>(p) * static_cast<double>(p);
  }
  __device__ void finish() const {
    const SquareSums total{sum_of_block(sums.parameter), sum_of_block(sums.update)};
    if (threadIdx.x == 0) partials[blockIdx.x] = total;
  }
};

/// rate = lr * |parameter| / |update|, within its bounds.
__global__ void find_rate(const SquareSums* partials, std::int64_t count, double lr,
                          double min_ratio, double max_ratio, float* rate) {
  SquareSums own{};
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    own.parameter += partials[i].parameter;
    own.update += partials[i].update;
  }
  const SquareSums total{sum_of_block(own.parameter), sum_of_block(own.update)};
  if (threadIdx.x != 0) return;
  double ratio = 1;
  if (total.parameter != 0 && total.update != 0) {
    ratio = sqrt(total.parameter / total.update);
    ratio = ratio < min_ratio ? min_ratio : ratio > max_ratio ? max_ratio : ratio;  // NaN stays NaN
  }
  *rate = static_cast<float>(lr * ratio);
}

struct Move {
  LambCoefficients c;
  const float* rate;

  __device__ void operator()(std::int64_t, float m, float v, float& p) const {
    p -= *rate * update_of(c, m, v, p);
  }
  __device__ void operator()(std::int64_t i, float m, float v, float& p, float& copy) const {
    (*this)(i, m, v, p);
    copy = p;
  }
};

}  // namespace

void CudaDevice::compute(const Lamb& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.copy.numel == 0 || op.copy.numel == numel);
  const LambCoefficients c = coefficients_of(op.step);
  auto* const partials = scratch<SquareSums>();
  auto* const rate = reinterpret_cast<float*>(partials + kMostBlocks);
  const InOut<float> p{elements<float>(op.parameter)};
  const InOut<float> m{elements<float>(op.exp_avg)};
  const InOut<float> v{elements<float>(op.exp_avg_sq)};
  std::int64_t blocks = 0;
  with_type(op.gradient.dtype, [&]<class T>(std::type_identity<T>) {
    blocks = for_each_element(stream(), numel, kMostBlocks, Moments{c, partials, {}},
                              In<T>{elements<T>(op.gradient)}, In<float>{p.data}, m, v);
  });
  if (blocks == 0) return;
  launch(stream(), {1, kRateThreads}, find_rate, partials, blocks, op.step.lr, op.step.min_ratio,
         op.step.max_ratio, rate);
  const auto move = [&](const auto&... copy) {
    for_each_element(stream(), numel, Move{c, rate}, In<float>{m.data}, In<float>{v.data}, p,
                     copy...);
  };
  if (op.copy.numel == 0) return move();
  with_type(op.copy.dtype,
            [&]<class T>(std::type_identity<T>) { move(Out<T>{elements<T>(op.copy)}); });
}

}  // namespace dstune::cuda
