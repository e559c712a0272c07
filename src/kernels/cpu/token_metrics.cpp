#include "core/device/operations/token_metrics.hpp"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Argmax& op) {
  const Matrix in = op.in;
  assert(in.dtype == DType::fp32 && op.out.dtype == DType::int64 && op.out.numel == in.rows);
  auto* const out = elements<std::int64_t>(op.out);
  for_rows(*this, in.rows, in.cols, [=](std::int64_t i) {
    const float* const x = row<float>(in, i);
    out[i] = std::max_element(x, x + in.cols) - x;
  });
}

void CpuDevice::compute(const Entropy& op) {
  const Matrix log_probs = op.log_probs;
  const Matrix probs = op.probs;
  const Matrix terms = op.terms;
  assert(log_probs.dtype == DType::fp32 && op.out.numel == log_probs.rows);
  assert(probs.numel() == log_probs.numel() && terms.numel() == log_probs.numel());
  auto* const out = elements<float>(op.out);
  for_rows(*this, log_probs.rows, log_probs.cols, [=](std::int64_t i) {
    const float* const x = row<float>(log_probs, i);
    float* const p = row<float>(probs, i);
    float* const term = row<float>(terms, i);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < log_probs.cols; ++j) {
      p[j] = fast_exp(x[j]);
      term[j] = p[j] * x[j];
      sum += term[j];
    }
    out[i] = -sum;
  });
}

}  // namespace dstune::cpu
