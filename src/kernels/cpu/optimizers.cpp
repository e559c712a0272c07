// What optimizers do with flat fp32 tensors, as torch's and DeepSpeed's kernels do it.
#include "core/device/operations/optimizers.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "core/device/operations/elementwise.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

void update(const AdamCoefficients& c, const float* gradient, float* parameter, float* exp_avg,
            float* exp_avg_sq, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float p = parameter[i];
    const float g = gradient[i] + c.l2 * p;
    const float m = c.beta1 * exp_avg[i] + c.rest1 * g;
    const float v = c.beta2 * exp_avg_sq[i] + c.rest2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    parameter[i] = p * c.keep - c.step_size * m / (std::sqrt(v) * c.inverse_root_bias + c.epsilon);
  }
}

}  // namespace

void CpuDevice::compute(const Adam& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const AdamCoefficients coefficients = coefficients_of(op.step);
  for_chunks(*this, numel, [=](std::int64_t begin, std::int64_t end) {
    update(coefficients, elements<float>(op.gradient) + begin,
           elements<float>(op.parameter) + begin, elements<float>(op.exp_avg) + begin,
           elements<float>(op.exp_avg_sq) + begin, end - begin);
  });
}

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

void CpuDevice::compute(const Lion& op) {
  const LionStep& step = op.step;
  assert(op.gradient.numel == op.parameter.numel && op.exp_avg.numel == op.parameter.numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const auto lr = static_cast<float>(step.lr);
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto rest1 = static_cast<float>(1 - step.beta1);
  const auto rest2 = static_cast<float>(1 - step.beta2);
  const auto keep = static_cast<float>(1 - step.lr * step.weight_decay);
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  for_chunks(*this, op.parameter.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float direction = beta1 * m[i] + rest1 * g[i];
      p[i] = p[i] * keep + (direction > 0 ? -lr : lr);
      m[i] = beta2 * m[i] + rest2 * g[i];
    }
  });
}

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

namespace {

inline float update_of(const LambCoefficients& c, float m, float v, float p) {
  const float root = std::sqrt(v * c.inverse_bias2 + c.inner_epsilon) + c.outer_epsilon;
  return m * c.inverse_bias1 / root + c.decay * p;
}

struct Squares {
  double parameter = 0;
  double update = 0;
};

Squares update_moments(const LambCoefficients& c, const float* g, const float* p, float* m,
                       float* v, std::int64_t count) {
  double parameters = 0;
  double updates = 0;
#pragma omp simd reduction(+ : parameters, updates)
  for (std::int64_t i = 0; i < count; ++i) {
    const float gradient = g[i] * c.unscale;
    m[i] = c.beta1 * m[i] + c.rest1 * gradient;
    v[i] = c.beta2 * v[i] + c.rest2 * gradient * gradient;
    const auto update = static_cast<double>(update_of(c, m[i], v[i], p[i]));
    updates += update * update;
    parameters += static_cast<double>(p[i]) * static_cast<double>(p[i]);
  }
  return {parameters, updates};
}

void update_parameter(const LambCoefficients& c, float rate, const float* m, const float* v,
                      float* p, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) p[i] -= rate * update_of(c, m[i], v[i], p[i]);
}

double ratio_of(const LambStep& step, const Squares& squares) {
  if (squares.parameter == 0 || squares.update == 0) return 1;
  return std::clamp(std::sqrt(squares.parameter / squares.update), step.min_ratio, step.max_ratio);
}

}  // namespace

void CpuDevice::compute(const Lamb& op) {
  const std::int64_t numel = op.parameter.numel;
  const Tensor copy = op.copy;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  const LambCoefficients c = coefficients_of(op.step);
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
        const Squares part = update_moments(c, block, p + begin, m + begin, v + begin, count);
        sum.parameter += part.parameter;
        sum.update += part.update;
      }
    });
  });
  const auto rate = static_cast<float>(op.step.lr * ratio_of(op.step, sum));
  for_chunks(*this, numel, [=](std::int64_t begin, std::int64_t end) {
    update_parameter(c, rate, m + begin, v + begin, p + begin, end - begin);
    if (copy.numel == 0) return;
    with_type(copy.dtype, [&]<class T>(std::type_identity<T>) {
      convert(p + begin, elements<T>(copy) + begin, end - begin);
    });
  });
}

}  // namespace dstune::cpu
