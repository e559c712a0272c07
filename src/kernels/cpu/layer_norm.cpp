#include <cassert>
#include <cmath>

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

void CpuDevice::layer_norm(Matrix x, Tensor gamma, Tensor beta, double epsilon,
                           LayerNormSaved saved, Matrix out) {
  assert(x.rows == out.rows && x.cols == out.cols && gamma.numel == x.cols);
  assert(x.dtype == out.dtype && gamma.dtype == x.dtype && beta.dtype == x.dtype);
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const g = elements<T>(gamma);
    const T* const b = elements<T>(beta);
    for_rows(*this, x.rows, x.cols, [=](std::int64_t i) {
      const T* const in = row<T>(x, i);
      T* const y = row<T>(out, i);
      const Moments moments = moments_of(in, x.cols, epsilon);
      elements<float>(saved.mean)[i] = moments.mean;
      elements<float>(saved.rstd)[i] = moments.rstd;
#pragma omp simd
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const float xhat = (to_float(in[j]) - moments.mean) * moments.rstd;
        y[j] = from_float<T>(xhat * to_float(g[j]) + to_float(b[j]));
      }
    });
  });
}

void CpuDevice::layer_norm_backward(Matrix d_out, Matrix x, Tensor gamma, LayerNormSaved saved,
                                    Matrix d_x, Tensor d_gamma, Tensor d_beta) {
  assert(x.rows == d_out.rows && x.cols == d_out.cols && gamma.numel == x.cols);
  assert(d_out.dtype == x.dtype && d_x.dtype == x.dtype && gamma.dtype == x.dtype);
  assert(d_gamma.dtype == x.dtype && d_beta.dtype == x.dtype);
  float* const gamma_sums = scratch(2 * x.cols);
  float* const beta_sums = gamma_sums + x.cols;
  std::fill(gamma_sums, gamma_sums + 2 * x.cols, 0.0F);
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, x.rows, x.cols, [=](std::int64_t i) {
      const Moments moments{elements<float>(saved.mean)[i], elements<float>(saved.rstd)[i]};
      backward_row(moments, row<T>(d_out, i), row<T>(x, i), elements<T>(gamma), row<T>(d_x, i),
                   gamma_sums, beta_sums, x.cols);
    });
    convert(gamma_sums, elements<T>(d_gamma), x.cols);
    convert(beta_sums, elements<T>(d_beta), x.cols);
  });
}

}  // namespace dstune::cpu
