#include "core/device/operations/softmax.hpp"

#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

void softmax(float* x, std::int64_t count) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < count; ++j) largest = x[j] > largest ? x[j] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) {
    x[j] = fast_exp(x[j] - largest);
    sum += x[j];
  }
  const float factor = 1.0F / sum;
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) x[j] *= factor;
}

/// d becomes the gradient of the scores.
void softmax_backward(float* d, const float* p, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += d[j] * p[j];
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) d[j] = p[j] * (d[j] - sum);
}

}  // namespace

void CpuDevice::compute(const Softmax& op) {
  assert(op.scores.rows == op.probs.rows && op.scores.cols == op.probs.cols);
  float* const values = scratch(op.scores.cols);
  for_rows(*this, op.scores.rows, op.scores.cols, [=](std::int64_t i) {
    load_row(op.scores, i, values);
    softmax(values, op.scores.cols);
    store_row(values, op.probs, i);
  });
}

void CpuDevice::compute(const SoftmaxBackward& op) {
  assert(op.d_probs.rows == op.probs.rows && op.d_probs.cols == op.probs.cols);
  assert(op.d_scores.rows == op.probs.rows && op.d_scores.cols == op.probs.cols);
  const std::int64_t cols = op.probs.cols;
  float* const d = scratch(2 * cols);
  float* const p = d + cols;
  for_rows(*this, op.probs.rows, cols, [=](std::int64_t i) {
    load_row(op.d_probs, i, d);
    load_row(op.probs, i, p);
    softmax_backward(d, p, cols);
    store_row(d, op.d_scores, i);
  });
}

}  // namespace dstune::cpu
