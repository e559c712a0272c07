#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/device/operations/norms.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

[[maybe_unused]] bool is_dense(const Matrix& matrix) { return matrix.stride == matrix.cols; }

[[maybe_unused]] bool fits(const RmsNormSaved& saved, std::int64_t rows, std::int64_t cols) {
  return saved.copy.rows == rows && saved.copy.cols == cols && saved.normalised.rows == rows &&
         saved.normalised.cols == cols && saved.rrms.numel == rows && is_dense(saved.copy) &&
         is_dense(saved.normalised);
}

/// 1 / sqrt(mean(x^2) + epsilon); writes x as fp32 where it is not.
template <class T>
float rrms_of(const T* x, float* copy, std::int64_t count, double epsilon) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t j = 0; j < count; ++j) {
    const float value = to_float(x[j]);
    if constexpr (!std::is_same_v<T, float>) copy[j] = value;
    squares += value * value;
  }
  return 1.0F / std::sqrt(squares / static_cast<float>(count) + static_cast<float>(epsilon));
}

/// x rrms(i): what was saved of it, or made anew of the copy.
template <class N>
struct Saved {
  const N* normalised;

  float operator()(std::int64_t j) const { return to_float(normalised[j]); }
};
struct MadeAnew {
  const float* copy;
  float rrms;

  float operator()(std::int64_t j) const { return copy[j] * rrms; }
};

/// Gradients of one row; the sums over rows of the weight's gradient grow in place.
template <class T, class Normalised>
void backward_row(float rrms, float offset, const T* d_out, Normalised normalised, const T* weight,
                  T* d_x, float* sums, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) {
    const float d = to_float(d_out[j]);
    const float xhat = normalised(j);
    sums[j] += d * xhat;
    sum += d * (offset + to_float(weight[j])) * xhat;
  }
  const float mean = sum / static_cast<float>(count);
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) {
    const float g = to_float(d_out[j]) * (offset + to_float(weight[j]));
    d_x[j] = from_float<T>(rrms * (g - normalised(j) * mean));
  }
}

/// f with the types of the storage and of what the weight multiplies.
template <class F>
void with_types(const Matrix& storage, const RmsNormSaved& saved, F f) {
  with_type(storage.dtype, [&]<class T>(std::type_identity<T> type) {
    if (saved.normalised.dtype == storage.dtype) return f(type, type);
    assert(saved.normalised.dtype == DType::fp32);
    f(type, std::type_identity<float>{});
  });
}

}  // namespace

void CpuDevice::calculate(const RmsNorm& op) {
  const Matrix x = op.x;
  const Matrix out = op.out;
  const RmsNormSaved saved = op.saved;
  const double epsilon = op.epsilon;
  const auto offset = static_cast<float>(op.offset);
  assert(x.rows == out.rows && x.cols == out.cols && op.weight.numel == x.cols);
  assert(is_dense(x) && is_dense(out) && fits(saved, x.rows, x.cols));
  assert(x.dtype == out.dtype && op.weight.dtype == x.dtype);
  assert(x.dtype != DType::fp32 || saved.copy.data == x.data);
  with_types(x, saved, [&]<class T, class N>(std::type_identity<T>, std::type_identity<N>) {
    const T* const w = elements<T>(op.weight);
    auto* const rrms = elements<float>(saved.rrms);
    for_rows(*this, x.rows, x.cols, [=](std::int64_t i) {
      const T* const in = row<T>(x, i);
      N* const xhat = row<N>(saved.normalised, i);
      T* const y = row<T>(out, i);
      const float factor = rrms_of(in, row<float>(saved.copy, i), x.cols, epsilon);
      rrms[i] = factor;
#pragma omp simd
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const float value = to_float(in[j]) * factor;
        xhat[j] = from_float<N>(value);
        y[j] = from_float<T>(value * (offset + to_float(w[j])));
      }
    });
  });
}

void CpuDevice::calculate(const RmsNormBackward& op) {
  const Matrix d_out = op.d_out;
  const Matrix d_x = op.d_x;
  const Matrix normalised = op.saved.normalised;
  const Matrix copy = op.saved.copy;
  const auto offset = static_cast<float>(op.offset);
  const auto* const rrms = elements<float>(op.saved.rrms);
  const std::int64_t cols = d_out.cols;
  assert(is_dense(d_out) && is_dense(d_x) && fits(op.saved, d_out.rows, cols));
  assert(d_x.rows == d_out.rows && d_x.cols == cols && op.weight.numel == cols);
  assert(d_x.dtype == d_out.dtype && op.weight.dtype == d_out.dtype);
  const bool trains = op.d_weight.numel > 0;
  assert(!trains || (op.d_weight.numel == cols && op.d_weight.dtype == d_out.dtype));
  float* const sums = scratch(cols);
  std::fill(sums, sums + cols, 0.0F);
  with_types(d_out, op.saved, [&]<class T, class N>(std::type_identity<T>, std::type_identity<N>) {
    const T* const weight = elements<T>(op.weight);
    for_rows(*this, d_out.rows, cols, [=](std::int64_t i) {
      const auto run = [&](auto xhat) {
        backward_row(rrms[i], offset, row<T>(d_out, i), xhat, weight, row<T>(d_x, i), sums, cols);
      };
      if (trains) return run(Saved<N>{row<N>(normalised, i)});
      run(MadeAnew{row<float>(copy, i), rrms[i]});
    });
    if (trains) convert(sums, elements<T>(op.d_weight), cols);
  });
}

}  // namespace dstune::cpu
