#include <algorithm>
#include <cassert>

#include "core/device/operations/attention.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// One head of one row: `half` pairs turn, the rest of its columns is copied.
template <class T>
void rotate_head(const T* in, const T* cos, const T* sin, float sign, T* out, std::int64_t half) {
#pragma omp simd
  for (std::int64_t j = 0; j < half; ++j) {
    const float a = to_float(in[j]);
    const float b = to_float(in[half + j]);
    const float c = to_float(cos[j]);
    const float s = sign * to_float(sin[j]);
    out[j] = from_float<T>(a * c - b * s);
    out[half + j] = from_float<T>(b * c + a * s);
  }
}

}  // namespace

void CpuDevice::calculate(const Rotate& op) {
  const Rotate own = op;
  const std::int64_t half = op.cos.cols;
  assert(op.in.rows == op.out.rows && op.in.rows % op.cos.rows == 0);
  assert(op.out.cols == op.heads * op.head_size && op.in_stride >= op.head_size);
  assert(op.sin.rows == op.cos.rows && op.sin.cols == half && 2 * half <= op.head_size);
  assert(op.in.dtype == op.out.dtype && op.cos.dtype == op.in.dtype);
  assert(op.sin.dtype == op.in.dtype && op.in.data != op.out.data);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, op.in.rows, op.out.cols, [=](std::int64_t i) {
      const T* const cos = row<T>(own.cos, i % own.cos.rows);
      const T* const sin = row<T>(own.sin, i % own.cos.rows);
      const float sign = own.inverse ? -1.0F : 1.0F;
      for (std::int64_t head = 0; head < own.heads; ++head) {
        const T* const from = row<T>(own.in, i) + head * own.in_stride;
        T* const to = row<T>(own.out, i) + head * own.head_size;
        rotate_head(from, cos, sin, sign, to, half);
        std::copy(from + 2 * half, from + own.head_size, to + 2 * half);
      }
    });
  });
}

}  // namespace dstune::cpu
