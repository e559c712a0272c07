#include "core/device/operations/clamp.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

float limit_of(Tensor flag) {
  assert(flag.dtype == DType::int8 && flag.numel == 1);
  return *elements<std::int8_t>(flag) != 0 ? kLargestBesideInfinite
                                           : std::numeric_limits<float>::infinity();
}

}  // namespace

void CpuDevice::compute(const Clamp& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  const float limit = limit_of(op.flag);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.in);
    T* const out = elements<T>(op.out);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = from_float<T>(std::clamp(to_float(in[i]), -limit, limit));
      }
    });
  });
}

void CpuDevice::compute(const ClampBackward& op) {
  assert(op.in.numel == op.d_out.numel && op.in.numel == op.d_in.numel);
  const float limit = limit_of(op.flag);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.in);
    const T* const d_out = elements<T>(op.d_out);
    T* const d_in = elements<T>(op.d_in);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        d_in[i] = std::abs(to_float(in[i])) <= limit ? d_out[i] : from_float<T>(0);
      }
    });
  });
}

}  // namespace dstune::cpu
