#include <cassert>
#include <cmath>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// f(i) for all elements, as a pass of its own.
template <class F>
void pass(const Device& device, std::int64_t count, F f) {
  for_chunks(device, count, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace

// Pass by pass, as torch.optim.Adagrad does with its lists of tensors.
void CpuDevice::adagrad(const AdagradStep& step, Tensor gradient, Tensor parameter, Tensor sum,
                        Tensor numerator, Tensor root) {
  assert(gradient.numel == parameter.numel && sum.numel == parameter.numel &&
         numerator.numel == parameter.numel && root.numel == parameter.numel);
  assert(gradient.dtype == DType::fp32 && parameter.dtype == DType::fp32);
  const std::int64_t count = parameter.numel;
  const auto decay = static_cast<float>(step.weight_decay);
  const auto epsilon = static_cast<float>(step.epsilon);
  const auto rate = static_cast<float>(-step.lr);
  float* const g = elements<float>(gradient);
  float* const p = elements<float>(parameter);
  float* const s = elements<float>(sum);
  float* const n = elements<float>(numerator);
  float* const r = elements<float>(root);
  const bool decays = step.weight_decay != 0;
  if (decays) pass(*this, count, [=](std::int64_t i) { n[i] = g[i] + decay * p[i]; });
  const float* const d = decays ? n : g;
  pass(*this, count, [=](std::int64_t i) { s[i] += d[i] * d[i]; });
  pass(*this, count, [=](std::int64_t i) { r[i] = std::sqrt(s[i]); });
  pass(*this, count, [=](std::int64_t i) { r[i] += epsilon; });
  pass(*this, count, [=](std::int64_t i) { n[i] = d[i] * rate; });
  pass(*this, count, [=](std::int64_t i) { p[i] += n[i] / r[i]; });
}

}  // namespace dstune::cpu
