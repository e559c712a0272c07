// What optimizers do with flat fp32 tensors, as torch's and DeepSpeed's kernels do it.
#include <cassert>

#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/optimizers.hpp"

namespace dstune::cuda {

void CudaDevice::compute(const Adam& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  for_each_element(
      stream(), numel, AdamUpdate<DeviceMath>{coefficients_of(op.step)},
      In<float>{elements<float>(op.gradient)}, InOut<float>{elements<float>(op.parameter)},
      InOut<float>{elements<float>(op.exp_avg)}, InOut<float>{elements<float>(op.exp_avg_sq)});
}

namespace {

struct AddTimes {
  float factor;
  __device__ void operator()(std::int64_t, float x, float y, float& out) const {
    out = x + factor * y;
  }
};

/// out = x + factor * y; out may be x.
void add_scaled(cudaStream_t stream, Tensor x, double factor, Tensor y, Tensor out) {
  assert(x.numel == out.numel && y.numel == out.numel);
  for_each_element(stream, out.numel, AddTimes{static_cast<float>(factor)},
                   In<float>{elements<float>(x)}, In<float>{elements<float>(y)},
                   Out<float>{elements<float>(out)});
}

struct AddSquare {
  __device__ void operator()(std::int64_t, float d, float& sum) const { sum += d * d; }
};

struct Root {
  __device__ void operator()(std::int64_t, float sum, float& root) const {
    root = DeviceMath::root(sum);
  }
};

struct AddConstant {
  float value;
  __device__ void operator()(std::int64_t, float& x) const { x += value; }
};

struct Times {
  float factor;
  __device__ void operator()(std::int64_t, float in, float& out) const { out = in * factor; }
};

struct AddQuotient {
  __device__ void operator()(std::int64_t, float n, float root, float& p) const { p += n / root; }
};

}  // namespace

// Pass by pass, as torch.optim.Adagrad launches its kernels.
void CudaDevice::compute(const Adagrad& op) {
  const std::int64_t count = op.parameter.numel;
  assert(op.gradient.numel == count && op.sum.numel == count && op.numerator.numel == count &&
         op.root.numel == count);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const In<float> gradient{elements<float>(op.gradient)};
  const InOut<float> parameter{elements<float>(op.parameter)};
  const InOut<float> sum{elements<float>(op.sum)};
  const InOut<float> root{elements<float>(op.root)};
  float* const numerator = elements<float>(op.numerator);
  const auto pass = [&](const auto& f, const auto&... operands) {
    for_each_element(stream(), count, f, operands...);
  };
  const bool decays = op.step.weight_decay != 0;
  if (decays) {
    add_scaled(stream(), op.gradient, op.step.weight_decay, op.parameter, op.numerator);
  }
  const In<float> direction = decays ? In<float>{numerator} : gradient;
  pass(AddSquare{}, direction, sum);
  pass(Root{}, In<float>{sum.data}, Out<float>{root.data});
  pass(AddConstant{static_cast<float>(op.step.epsilon)}, root);
  pass(Times{static_cast<float>(-op.step.lr)}, direction, Out<float>{numerator});
  pass(AddQuotient{}, In<float>{numerator}, In<float>{root.data}, parameter);
}

void CudaDevice::compute(const Lion& op) {
  assert(op.gradient.numel == op.parameter.numel && op.exp_avg.numel == op.parameter.numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  for_each_element(
      stream(), op.parameter.numel, LionUpdate(op.step), In<float>{elements<float>(op.gradient)},
      InOut<float>{elements<float>(op.parameter)}, InOut<float>{elements<float>(op.exp_avg)});
}

void CudaDevice::compute(const Sgd& op) {
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  run_passes(
      op, [this](const auto& operation) { compute(operation); },
      [this](Tensor x, double factor, Tensor y, Tensor out) {
        add_scaled(stream(), x, factor, y, out);
      });
}

namespace {

constexpr std::int64_t kMostBlocks = 2048;
constexpr int kRateThreads = 256;

struct SquareSums {
  double parameter;
  double update;
};

/// partials[b]: of what block b has seen.
struct Moments {
  LambUpdate<DeviceMath> lamb;
  SquareSums* partials;
  SquareSums sums;

  __device__ void operator()(std::int64_t, float g, float p, float& m, float& v) {
    lamb.add_to_moments(g, m, v);
    const auto update = static_cast<double>(lamb.value(m, v, p));
    sums.update += update * update;
    sums.parameter += static_cast<double>(p) * static_cast<double>(p);
  }
  __device__ void finish() const {
    const SquareSums total{sum_of_block(sums.parameter), sum_of_block(sums.update)};
    if (threadIdx.x == 0) partials[blockIdx.x] = total;
  }
};

/// rate = lr * |parameter| / |update|, within its bounds.
__global__ void find_rate(const SquareSums* partials, std::int64_t count, LambStep step,
                          float* rate) {
  SquareSums own{};
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
    own.parameter += partials[i].parameter;
    own.update += partials[i].update;
  }
  const SquareSums total{sum_of_block(own.parameter), sum_of_block(own.update)};
  if (threadIdx.x != 0) return;
  *rate = lamb_rate<DeviceMath>(step, total.parameter, total.update);
}

struct Move {
  LambUpdate<DeviceMath> lamb;
  const float* rate;

  __device__ void operator()(std::int64_t, float m, float v, float& p) const {
    p -= *rate * lamb.value(m, v, p);
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
  const LambUpdate<DeviceMath> lamb{coefficients_of(op.step)};
  auto* const partials = scratch<SquareSums>();
  auto* const rate = reinterpret_cast<float*>(partials + kMostBlocks);
  const InOut<float> p{elements<float>(op.parameter)};
  const InOut<float> m{elements<float>(op.exp_avg)};
  const InOut<float> v{elements<float>(op.exp_avg_sq)};
  std::int64_t blocks = 0;
  with_type(op.gradient.dtype, [&]<class T>(std::type_identity<T>) {
    blocks = for_each_element(stream(), numel, kMostBlocks, Moments{lamb, partials, {}},
                              In<T>{elements<T>(op.gradient)}, In<float>{p.data}, m, v);
  });
  if (blocks == 0) return;
  launch(stream(), {1, kRateThreads}, find_rate, partials, blocks, op.step, rate);
  const auto move = [&](const auto&... copy) {
    for_each_element(stream(), numel, Move{lamb, rate}, In<float>{m.data}, In<float>{v.data}, p,
                     copy...);
  };
  if (op.copy.numel == 0) return move();
  with_type(op.copy.dtype,
            [&]<class T>(std::type_identity<T>) { move(Out<T>{elements<T>(op.copy)}); });
}

}  // namespace dstune::cuda
