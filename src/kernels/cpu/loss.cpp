// Losses by their log-softmax, and what trainers log beside them.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "core/device/operations/losses.hpp"
#include "core/device/operations/softmax.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

struct LogSumExp {
  float largest;
  float log_sum;  // log(sum(exp(x - largest)))
};

LogSumExp log_sum_exp(const float* x, std::int64_t count) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < count; ++j) largest = x[j] > largest ? x[j] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += fast_exp(x[j] - largest);
  return {largest, std::log(sum)};
}

/// Where a row's results are computed: itself, or `buffer`, from where put() rounds them.
template <class T>
float* place_of(T* to, float* buffer) {
  if constexpr (std::is_same_v<T, float>) return to;
  return buffer;
}

template <class T>
void put(const float* values, std::int64_t count, T* to) {
  if constexpr (!std::is_same_v<T, float>) convert(values, to, count);
}

std::int64_t counted_rows(const std::int64_t* labels, std::int64_t rows) {
  return std::count_if(labels, labels + rows, [](std::int64_t label) { return label >= 0; });
}

}  // namespace

void CpuDevice::calculate(const LogSoftmax& op) {
  const Matrix logits = op.logits;
  const Matrix log_probs = op.log_probs;
  assert(logits.dtype == log_probs.dtype);
  assert(logits.rows == log_probs.rows && logits.cols == log_probs.cols);
  float* const buffer = scratch(logits.cols);
  with_type(logits.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, logits.rows, logits.cols, [=](std::int64_t i) {
      T* const out = row<T>(log_probs, i);
      const float* const x = as_floats(row<T>(logits, i), logits.cols, buffer);
      float* const y = place_of(out, buffer);
      const LogSumExp lse = log_sum_exp(x, logits.cols);
#pragma omp simd
      for (std::int64_t j = 0; j < logits.cols; ++j) y[j] = x[j] - lse.largest - lse.log_sum;
      put(y, logits.cols, out);
    });
  });
}

void CpuDevice::compute(const NextTokens& op) {
  assert(op.tokens.numel == op.labels.numel && op.tokens.numel % op.sequence == 0);
  const auto* const tokens = elements<std::int64_t>(op.tokens);
  auto* const labels = elements<std::int64_t>(op.labels);
  for (std::int64_t i = 0; i < op.labels.numel; ++i) {
    labels[i] = (i + 1) % op.sequence == 0 ? -1 : tokens[i + 1];
  }
}

void CpuDevice::compute(const NllLoss& op) {
  assert(op.labels.numel == op.log_probs.rows && op.labels.dtype == DType::int64);
  const auto* const labels = elements<std::int64_t>(op.labels);
  const std::int64_t counted = counted_rows(labels, op.log_probs.rows);
  if (counted == 0) return;
  double total = 0;
  with_type(op.log_probs.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < op.log_probs.rows; ++i) {
      assert(labels[i] < op.log_probs.cols);
      if (labels[i] < 0) continue;
      total -= static_cast<double>(to_float(row<T>(op.log_probs, i)[labels[i]]));
    }
  });
  *elements<float>(op.sum) += static_cast<float>(op.factor * total / static_cast<double>(counted));
}

void CpuDevice::compute(const NllLossBackward& op) {
  const Matrix out = op.out;
  assert(op.labels.numel == out.rows);
  const auto* const labels = elements<std::int64_t>(op.labels);
  const std::int64_t counted = std::max<std::int64_t>(1, counted_rows(labels, out.rows));
  const auto value = static_cast<float>(-op.loss_scale / static_cast<double>(counted));
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, out.cols, [=](std::int64_t i) {
      T* const d = row<T>(out, i);
      std::memset(d, 0, static_cast<std::size_t>(out.cols) * sizeof(T));
      if (labels[i] >= 0) d[labels[i]] = from_float<T>(value);
    });
  });
}

void CpuDevice::calculate(const LogSoftmaxBackward& op) {
  const Matrix d_log_probs = op.d_log_probs;
  const Matrix log_probs = op.log_probs;
  const Matrix d_logits = op.d_logits;
  assert(log_probs.dtype == d_log_probs.dtype && d_logits.dtype == d_log_probs.dtype);
  assert(d_log_probs.rows == d_logits.rows && d_log_probs.cols == d_logits.cols);
  const std::int64_t cols = d_logits.cols;
  float* const buffer = scratch(2 * cols);
  with_type(d_logits.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, d_logits.rows, cols, [=](std::int64_t i) {
      T* const out = row<T>(d_logits, i);
      const float* const d = as_floats(row<T>(d_log_probs, i), cols, buffer);
      const float* const y = as_floats(row<T>(log_probs, i), cols, buffer + cols);
      float* const result = place_of(out, buffer);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < cols; ++j) sum += d[j];
#pragma omp simd
      for (std::int64_t j = 0; j < cols; ++j) result[j] = d[j] - fast_exp(y[j]) * sum;
      put(result, cols, out);
    });
  });
}

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
