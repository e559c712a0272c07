// What optimizers do with flat fp32 tensors, as torch's and DeepSpeed's kernels do it.
#include "kernels/optimizers.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

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

/// out = x + factor * y; out may be x.
void add_scaled(const Device& device, Tensor x, double factor, Tensor y, Tensor out) {
  assert(x.numel == out.numel && y.numel == out.numel);
  const auto f = static_cast<float>(factor);
  const float* const a = elements<float>(x);
  const float* const b = elements<float>(y);
  float* const sum = elements<float>(out);
  pass(device, out.numel, [=](std::int64_t i) { sum[i] = a[i] + f * b[i]; });
}

}  // namespace

void CpuDevice::compute(const Adam& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const AdamUpdate<VectorMath> update{coefficients_of(op.step)};
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  auto* const v = elements<float>(op.exp_avg_sq);
  pass(*this, numel, [=](std::int64_t i) { update(i, g[i], p[i], m[i], v[i]); });
}

// Pass by pass, as torch.optim.Adagrad does with its lists of tensors.
void CpuDevice::compute(const Adagrad& op) {
  const std::int64_t count = op.parameter.numel;
  assert(op.gradient.numel == count && op.sum.numel == count && op.numerator.numel == count &&
         op.root.numel == count);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const auto epsilon = static_cast<float>(op.step.epsilon);
  const auto rate = static_cast<float>(-op.step.lr);
  auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const s = elements<float>(op.sum);
  auto* const n = elements<float>(op.numerator);
  auto* const r = elements<float>(op.root);
  const bool decays = op.step.weight_decay != 0;
  if (decays) add_scaled(*this, op.gradient, op.step.weight_decay, op.parameter, op.numerator);
  const float* const d = decays ? n : g;
  pass(*this, count, [=](std::int64_t i) { s[i] += d[i] * d[i]; });
  pass(*this, count, [=](std::int64_t i) { r[i] = std::sqrt(s[i]); });
  pass(*this, count, [=](std::int64_t i) { r[i] += epsilon; });
  pass(*this, count, [=](std::int64_t i) { n[i] = d[i] * rate; });
  pass(*this, count, [=](std::int64_t i) { p[i] += n[i] / r[i]; });
}

void CpuDevice::compute(const Lion& op) {
  assert(op.gradient.numel == op.parameter.numel && op.exp_avg.numel == op.parameter.numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const LionUpdate update(op.step);
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  pass(*this, op.parameter.numel, [=](std::int64_t i) { update(i, g[i], p[i], m[i]); });
}

void CpuDevice::compute(const Sgd& op) {
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  run_passes(
      op, [this](const auto& operation) { compute(operation); },
      [this](Tensor x, double factor, Tensor y, Tensor out) {
        add_scaled(*this, x, factor, y, out);
      });
}

namespace {

struct Squares {
  double parameter = 0;
  double update = 0;
};

Squares update_moments(const LambUpdate<VectorMath>& lamb, const float* g, const float* p, float* m,
                       float* v, std::int64_t count) {
  double parameters = 0;
  double updates = 0;
#pragma omp simd reduction(+ : parameters, updates)
  for (std::int64_t i = 0; i < count; ++i) {
    lamb.add_to_moments(g[i], m[i], v[i]);
    const auto update = static_cast<double>(lamb.value(m[i], v[i], p[i]));
    updates += update * update;
    parameters += static_cast<double>(p[i]) * static_cast<double>(p[i]);
  }
  return {parameters, updates};
}

void update_parameter(const LambUpdate<VectorMath>& lamb, float rate, const float* m,
                      const float* v, float* p, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) p[i] -= rate * lamb.value(m[i], v[i], p[i]);
}

}  // namespace

void CpuDevice::compute(const Lamb& op) {
  const std::int64_t numel = op.parameter.numel;
  const Tensor copy = op.copy;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  const LambUpdate<VectorMath> lamb{coefficients_of(op.step)};
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  auto* const v = elements<float>(op.exp_avg_sq);
  Squares sum;
  with_type(op.gradient.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const g = elements<T>(op.gradient);
    for_chunks(*this, numel, [=, &sum](std::int64_t begin, std::int64_t end) {
      for (; begin < end; begin += kBlockElements) {
        const std::int64_t count = std::min(kBlockElements, end - begin);
        std::array<float, kBlockElements> buffer;  // NOLINT(*-member-init): written if it is read
        const float* const block = as_floats(g + begin, count, buffer.data());
        const Squares part = update_moments(lamb, block, p + begin, m + begin, v + begin, count);
        sum.parameter += part.parameter;
        sum.update += part.update;
      }
    });
  });
  const auto rate = lamb_rate<VectorMath>(op.step, sum.parameter, sum.update);
  for_chunks(*this, numel, [=](std::int64_t begin, std::int64_t end) {
    update_parameter(lamb, rate, m + begin, v + begin, p + begin, end - begin);
    if (copy.numel == 0) return;
    with_type(copy.dtype, [&]<class T>(std::type_identity<T>) {
      convert(p + begin, elements<T>(copy) + begin, end - begin);
    });
  });
}

}  // namespace dstune::cpu
