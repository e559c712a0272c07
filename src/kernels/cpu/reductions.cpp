#include <algorithm>
#include <cassert>
#include <cmath>
#include <type_traits>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

template <class T>
double sum_of_squares_of(const T* x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(to_float(x[i]));
    sum += value * value;
  }
  return sum;
}

template <class T>
void add_to(float* sums, const T* x, std::int64_t count) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) sums[j] += to_float(x[j]);
}

}  // namespace

void CpuDevice::compute(const AddSquares& op) {
  const Tensor in = op.in;
  double squares = 0;
  with_type(in.dtype, [&]<class T>(std::type_identity<T>) {
    for_chunks(*this, in.numel, [=, &squares](std::int64_t begin, std::int64_t end) {
      squares += sum_of_squares_of(elements<T>(in) + begin, end - begin);
    });
  });
  set_number(op.sum, number_in(op.sum) + squares);
}

void CpuDevice::compute(const FindInfOrNan& op) {
  const Tensor in = op.in;
  assert(op.flag.dtype == DType::uint8);
  bool found = false;
  with_type(in.dtype, [&]<class T>(std::type_identity<T>) {
    for_chunks(*this, in.numel, [=, &found](std::int64_t begin, std::int64_t end) {
      found = found || any_special(elements<T>(in) + begin, end - begin);
    });
  });
  if (found) *elements<std::uint8_t>(op.flag) = 1;
}

void CpuDevice::compute(const ClipFactor& op) {
  *elements<float>(op.factor) =
      static_cast<float>(clip_factor(number_in(op.squares), op.clipping, op.loss_scale));
}

void CpuDevice::compute(const ScaleBy& op) {
  compute(Scale{op.inout, static_cast<double>(*elements<float>(op.factor))});
}

void CpuDevice::compute(const AddBroadcast& op) {
  const Matrix a = op.a;
  const Matrix b = op.b;
  const Matrix out = op.out;
  assert(a.rows == out.rows && a.cols == out.cols && a.rows % b.rows == 0 && a.cols == b.cols);
  assert(a.dtype == out.dtype && b.dtype == out.dtype);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, out.rows, out.cols, [=](std::int64_t i) {
      const T* const x = row<T>(a, i);
      const T* const y = row<T>(b, i % b.rows);
      T* const sum = row<T>(out, i);
#pragma omp simd
      for (std::int64_t j = 0; j < out.cols; ++j) {
        sum[j] = from_float<T>(to_float(x[j]) + to_float(y[j]));
      }
    });
  });
}

void CpuDevice::compute(const AddBias& op) {
  assert(op.inout.cols == op.bias.numel);
  compute(AddBroadcast{.a = op.inout, .b = as_matrix(op.bias, 1, op.bias.numel), .out = op.inout});
}

void CpuDevice::compute(const AddBroadcastBackward& op) {
  const Matrix d_out = op.d_out;
  const Matrix d_b = op.d_b;
  assert(d_out.rows % d_b.rows == 0 && d_out.cols == d_b.cols && d_out.dtype == d_b.dtype);
  float* const sums = scratch(d_b.cols);
  with_type(d_out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, d_b.rows, d_out.rows / d_b.rows * d_b.cols, [=](std::int64_t j) {
      std::fill(sums, sums + d_b.cols, 0.0F);
      for (std::int64_t i = j; i < d_out.rows; i += d_b.rows)
        add_to(sums, row<T>(d_out, i), d_b.cols);
      convert(sums, row<T>(d_b, j), d_b.cols);
    });
  });
}

void CpuDevice::compute(const BiasGradient& op) {
  const Matrix d_out = op.d_out;
  const Tensor out = op.out;
  assert(d_out.cols == out.numel && d_out.dtype == out.dtype);
  float* const sums = scratch(d_out.cols);
  std::fill(sums, sums + d_out.cols, 0.0F);
  with_type(d_out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, d_out.rows, d_out.cols,
             [=](std::int64_t i) { add_to(sums, row<T>(d_out, i), d_out.cols); });
    convert(sums, elements<T>(out), out.numel);
  });
}

}  // namespace dstune::cpu
