#include "core/device/operations/lamb.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

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
