#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// out = x + factor * y; out may be x.
void add_scaled(const Device& device, Tensor x, double factor, Tensor y, Tensor out) {
  assert(x.numel == out.numel && y.numel == out.numel);
  const auto f = static_cast<float>(factor);
  const float* const a = elements<float>(x);
  const float* const b = elements<float>(y);
  float* const sum = elements<float>(out);
  for_chunks(device, out.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) sum[i] = a[i] + f * b[i];
  });
}

}  // namespace

// Pass by pass, as torch.optim.SGD does with its lists of tensors.
void CpuDevice::sgd(const SgdStep& step, Tensor gradient, Tensor parameter, Tensor momentum,
                    Tensor decayed) {
  assert(gradient.dtype == DType::fp32 && parameter.dtype == DType::fp32);
  Tensor direction = gradient;
  if (step.weight_decay != 0) {
    add_scaled(*this, gradient, step.weight_decay, parameter, decayed);
    direction = decayed;
  }
  if (step.momentum != 0) {
    if (step.first) {
      copy(direction, momentum);
    } else {
      scale(momentum, step.momentum);
      add_scaled(*this, momentum, 1 - step.dampening, direction, momentum);
    }
    if (step.nesterov) {
      add_scaled(*this, direction, step.momentum, momentum, direction);
    } else {
      direction = momentum;
    }
  }
  add_scaled(*this, parameter, -step.lr, direction, parameter);
}

}  // namespace dstune::cpu
