#include <cassert>
#include <cmath>

#include "core/device/operations/norms.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

struct Moments {
  float mean;
  float rstd;
};

/// Two passes: no cancellation, and the row is in the cache for the second.
template <class T>
Moments moments_of(const T* x, std::int64_t count, double epsilon) {
  const auto n = static_cast<float>(count);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += to_float(x[j]);
  const float mean = sum / n;
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t j = 0; j < count; ++j) {
    const float centred = to_float(x[j]) - mean;
    squares += centred * centred;
  }
  return {mean, 1.0F / std::sqrt(squares / n + static_cast<float>(epsilon))};
}

/// Gradients of one row; the sums over rows of gamma's and beta's gradients grow in place.
///
/// With xhat = (x - mean) rstd and g = d_out gamma:
/// d_x = rstd (g - mean(g) - xhat mean(g xhat)).
template <class T>
void backward_row(Moments moments, const T* d_out, const T* x, const T* gamma, T* d_x,
                  float* gamma_sums, float* beta_sums, std::int64_t count) {
  float sum_g = 0;
  float sum_g_xhat = 0;
#pragma omp simd reduction(+ : sum_g, sum_g_xhat)
  for (std::int64_t j = 0; j < count; ++j) {
    const float d = to_float(d_out[j]);
    const float xhat = (to_float(x[j]) - moments.mean) * moments.rstd;
    const float g = d * to_float(gamma[j]);
    sum_g += g;
    sum_g_xhat += g * xhat;
    gamma_sums[j] += d * xhat;
    beta_sums[j] += d;
  }
  const float mean_g = sum_g / static_cast<float>(count);
  const float mean_g_xhat = sum_g_xhat / static_cast<float>(count);
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    const float xhat = (to_float(x[j]) - moments.mean) * moments.rstd;
    const float g = to_float(d_out[j]) * to_float(gamma[j]);
    d_x[j] = from_float<T>(moments.rstd * (g - mean_g - xhat * mean_g_xhat));
  }
}

}  // namespace

void CpuDevice::calculate(const LayerNorm& op) {
  const Matrix x = op.x;
  const Matrix out = op.out;
  const double epsilon = op.epsilon;
  auto* const mean = elements<float>(op.saved.mean);
  auto* const rstd = elements<float>(op.saved.rstd);
  assert(x.rows == out.rows && x.cols == out.cols && op.gamma.numel == x.cols);
  assert(x.dtype == out.dtype && op.gamma.dtype == x.dtype && op.beta.dtype == x.dtype);
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const g = elements<T>(op.gamma);
    const T* const b = elements<T>(op.beta);
    for_rows(*this, x.rows, x.cols, [=](std::int64_t i) {
      const T* const in = row<T>(x, i);
      T* const y = row<T>(out, i);
      const Moments moments = moments_of(in, x.cols, epsilon);
      mean[i] = moments.mean;
      rstd[i] = moments.rstd;
#pragma omp simd
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const float xhat = (to_float(in[j]) - moments.mean) * moments.rstd;
        y[j] = from_float<T>(xhat * to_float(g[j]) + to_float(b[j]));
      }
    });
  });
}

void CpuDevice::calculate(const LayerNormBackward& op) {
  const Matrix d_out = op.d_out;
  const Matrix x = op.x;
  const Matrix d_x = op.d_x;
  const auto* const mean = elements<float>(op.saved.mean);
  const auto* const rstd = elements<float>(op.saved.rstd);
  assert(x.rows == d_out.rows && x.cols == d_out.cols && op.gamma.numel == x.cols);
  assert(d_out.dtype == x.dtype && d_x.dtype == x.dtype && op.gamma.dtype == x.dtype);
  assert(op.d_gamma.dtype == x.dtype && op.d_beta.dtype == x.dtype);
  float* const gamma_sums = scratch(2 * x.cols);
  float* const beta_sums = gamma_sums + x.cols;
  std::fill(gamma_sums, gamma_sums + 2 * x.cols, 0.0F);
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const gamma = elements<T>(op.gamma);
    for_rows(*this, x.rows, x.cols, [=](std::int64_t i) {
      backward_row({mean[i], rstd[i]}, row<T>(d_out, i), row<T>(x, i), gamma, row<T>(d_x, i),
                   gamma_sums, beta_sums, x.cols);
    });
    convert(gamma_sums, elements<T>(op.d_gamma), x.cols);
    convert(beta_sums, elements<T>(op.d_beta), x.cols);
  });
}

}  // namespace dstune::cpu
