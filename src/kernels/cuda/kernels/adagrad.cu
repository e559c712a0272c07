#include <cassert>

#include "core/device/operations/adagrad.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Decay {
  float factor;
  __device__ void operator()(std::int64_t, float g, float p, float& out) const {
    out = g + factor * p;
  }
};

struct AddSquare {
  __device__ void operator()(std::int64_t, float d, float& sum) const { sum += d * d; }
};

struct Root {
  __device__ void operator()(std::int64_t, float sum, float& root) const { root = sqrtf(sum); }
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
    pass(Decay{static_cast<float>(op.step.weight_decay)}, gradient, In<float>{parameter.data},
         Out<float>{numerator});
  }
  const In<float> direction = decays ? In<float>{numerator} : gradient;
  pass(AddSquare{}, direction, sum);
  pass(Root{}, In<float>{sum.data}, Out<float>{root.data});
  pass(AddConstant{static_cast<float>(op.step.epsilon)}, root);
  pass(Times{static_cast<float>(-op.step.lr)}, direction, Out<float>{numerator});
  pass(AddQuotient{}, In<float>{numerator}, In<float>{root.data}, parameter);
}

}  // namespace dstune::cuda
