#include <cassert>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/scale.hpp"
#include "core/device/operations/sgd.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

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

}  // namespace

// Pass by pass, as torch.optim.SGD launches its kernels.
void CudaDevice::compute(const Sgd& op) {
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const SgdStep& step = op.step;
  const Tensor momentum = op.momentum;
  Tensor direction = op.gradient;
  if (step.weight_decay != 0) {
    add_scaled(stream(), op.gradient, step.weight_decay, op.parameter, op.decayed);
    direction = op.decayed;
  }
  if (step.momentum != 0) {
    if (step.first) {
      compute(Copy{direction, momentum});
    } else {
      compute(Scale{momentum, step.momentum});
      add_scaled(stream(), momentum, 1 - step.dampening, direction, momentum);
    }
    if (step.nesterov) {
      add_scaled(stream(), direction, step.momentum, momentum, direction);
    } else {
      direction = momentum;
    }
  }
  add_scaled(stream(), op.parameter, -step.lr, direction, op.parameter);
}

}  // namespace dstune::cuda
