#include "core/device/operations/adagrad.hpp"

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
void CpuDevice::compute(const Adagrad& op) {
  const std::int64_t count = op.parameter.numel;
  assert(op.gradient.numel == count && op.sum.numel == count && op.numerator.numel == count &&
         op.root.numel == count);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const auto decay = static_cast<float>(op.step.weight_decay);
  const auto epsilon = static_cast<float>(op.step.epsilon);
  const auto rate = static_cast<float>(-op.step.lr);
  auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const s = elements<float>(op.sum);
  auto* const n = elements<float>(op.numerator);
  auto* const r = elements<float>(op.root);
  const bool decays = op.step.weight_decay != 0;
  if (decays) pass(*this, count, [=](std::int64_t i) { n[i] = g[i] + decay * p[i]; });
  const float* const d = decays ? n : g;
  pass(*this, count, [=](std::int64_t i) { s[i] += d[i] * d[i]; });
  pass(*this, count, [=](std::int64_t i) { r[i] = std::sqrt(s[i]); });
  pass(*this, count, [=](std::int64_t i) { r[i] += epsilon; });
  pass(*this, count, [=](std::int64_t i) { n[i] = d[i] * rate; });
  pass(*this, count, [=](std::int64_t i) { p[i] += n[i] / r[i]; });
}

}  // namespace dstune::cpu
