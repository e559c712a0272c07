#include "core/device/operations/sgd.hpp"

#include <cassert>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/scale.hpp"
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
void CpuDevice::compute(const Sgd& op) {
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const SgdStep& step = op.step;
  const Tensor momentum = op.momentum;
  Tensor direction = op.gradient;
  if (step.weight_decay != 0) {
    add_scaled(*this, op.gradient, step.weight_decay, op.parameter, op.decayed);
    direction = op.decayed;
  }
  if (step.momentum != 0) {
    if (step.first) {
      compute(Copy{direction, momentum});
    } else {
      compute(Scale{momentum, step.momentum});
      add_scaled(*this, momentum, 1 - step.dampening, direction, momentum);
    }
    if (step.nesterov) {
      add_scaled(*this, direction, step.momentum, momentum, direction);
    } else {
      direction = momentum;
    }
  }
  add_scaled(*this, op.parameter, -step.lr, direction, op.parameter);
}

}  // namespace dstune::cpu
