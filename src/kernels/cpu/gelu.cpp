// gelu_new(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hugging Face's NewGELUActivation.
#include <cassert>

#include "core/device/operations/gelu_new.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

constexpr float kRootTwoOverPi = 0.797884561F;
constexpr float kCubic = 0.044715F;

}  // namespace

void CpuDevice::compute(const GeluNew& op) {
  assert(op.x.numel == op.out.numel && op.saved.tanh.numel == op.x.numel);
  assert(op.x.dtype == op.out.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.x);
    T* const tanh = elements<T>(op.saved.tanh);
    T* const half_x = elements<T>(op.saved.half_x);
    T* const one_plus_tanh = elements<T>(op.saved.one_plus_tanh);
    T* const y = elements<T>(op.out);
    for_chunks(*this, op.x.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float value = to_float(in[i]);
        const float t = fast_tanh(kRootTwoOverPi * (value + kCubic * value * value * value));
        tanh[i] = from_float<T>(t);
        half_x[i] = from_float<T>(0.5F * value);
        one_plus_tanh[i] = from_float<T>(1.0F + t);
        y[i] = from_float<T>(0.5F * value * (1.0F + t));
      }
    });
  });
}

// x/2 and 1 + tanh are recomputed: cheaper than reading what PyTorch would read.
void CpuDevice::compute(const GeluNewBackward& op) {
  assert(op.x.numel == op.d_out.numel && op.x.numel == op.d_x.numel);
  assert(op.saved.tanh.numel == op.x.numel);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d = elements<T>(op.d_out);
    const T* const in = elements<T>(op.x);
    const T* const tanh = elements<T>(op.saved.tanh);
    T* const result = elements<T>(op.d_x);
    for_chunks(*this, op.x.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        const float value = to_float(in[i]);
        const float t = to_float(tanh[i]);
        const float inner = kRootTwoOverPi * (1.0F + 3.0F * kCubic * value * value);
        const float slope = 0.5F * (1.0F + t) + 0.5F * value * (1.0F - t * t) * inner;
        result[i] = from_float<T>(to_float(d[i]) * slope);
      }
    });
  });
}

}  // namespace dstune::cpu
