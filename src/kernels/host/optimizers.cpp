// DeepSpeed's optimizers for the CPU (DeepSpeedCPUAdam, DeepSpeedCPULion, DeepSpeedCPUAdagrad):
// each one fused loop.
#include "kernels/optimizers.hpp"

#include <cassert>
#include <cmath>
#include <cstdint>

#include "kernels/element_types.hpp"
#include "kernels/host/chunks.hpp"
#include "kernels/host/loops.hpp"
#include "kernels/host/passes.hpp"

namespace dstune::host {
namespace {

struct ScalarMath {
  static float root(float x) { return std::sqrt(x); }
};

/// f(i) for all elements.
template <class F>
void pass(Threads& threads, const PassOptions& options, std::int64_t count, std::int64_t traffic,
          F f) {
  const InstructionSet set = options.instructions;
  for_chunks(threads, options, count, traffic,
             [=](std::int64_t begin, std::int64_t end) { loop(set, begin, end, f); });
}

}  // namespace

void compute(Threads& threads, const Adam& op, const PassOptions& options) {
  const std::int64_t count = op.parameter.numel;
  assert(op.gradient.numel == count && op.exp_avg.numel == count && op.exp_avg_sq.numel == count);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const AdamUpdate<ScalarMath> update{coefficients_of(op.step)};
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  auto* const v = elements<float>(op.exp_avg_sq);
  pass(threads, options, count, 28, [=](std::int64_t i) { update(i, g[i], p[i], m[i], v[i]); });
}

void compute(Threads& threads, const Lion& op, const PassOptions& options) {
  const std::int64_t count = op.parameter.numel;
  assert(op.gradient.numel == count && op.exp_avg.numel == count);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  // What has neither momentum nor gradient moves the other way than in the kernel for GPUs, of
  // which LionUpdate is: here the sign of a zero decides (csrc/lion/cpu_lion_impl.cpp of 0.19.8).
  const LionUpdate c(op.step);
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  pass(threads, options, count, 20, [=](std::int64_t i) {
    const float direction = c.beta1 * m[i] + c.rest1 * g[i];
    p[i] = p[i] * c.keep - std::copysign(c.lr, direction);
    m[i] = c.beta2 * m[i] + c.rest2 * g[i];
  });
}

void compute(Threads& threads, const Adagrad& op, const PassOptions& options) {
  const std::int64_t count = op.parameter.numel;
  assert(op.gradient.numel == count && op.sum.numel == count);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const auto epsilon = static_cast<float>(op.step.epsilon);
  const auto rate = static_cast<float>(-op.step.lr);
  const auto decay = static_cast<float>(op.step.weight_decay);
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const s = elements<float>(op.sum);
  pass(threads, options, count, 20, [=](std::int64_t i) {
    const float direction = g[i] + decay * p[i];
    s[i] += direction * direction;
    p[i] += rate * (direction / (std::sqrt(s[i]) + epsilon));
  });
}

}  // namespace dstune::host
