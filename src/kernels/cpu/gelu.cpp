// gelu_new(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Hugging Face's NewGELUActivation.
#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

constexpr float kRootTwoOverPi = 0.797884561F;
constexpr float kCubic = 0.044715F;

}  // namespace

void CpuDevice::gelu_new(Tensor x, GeluSaved saved, Tensor out) {
  assert(x.numel == out.numel && saved.tanh.numel == x.numel && x.dtype == out.dtype);
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(x);
    T* const tanh = elements<T>(saved.tanh);
    T* const half_x = elements<T>(saved.half_x);
    T* const one_plus_tanh = elements<T>(saved.one_plus_tanh);
    T* const y = elements<T>(out);
    for_chunks(*this, x.numel, [=](std::int64_t begin, std::int64_t end) {
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
void CpuDevice::gelu_new_backward(Tensor d_out, Tensor x, GeluSaved saved, Tensor d_x) {
  assert(x.numel == d_out.numel && x.numel == d_x.numel && saved.tanh.numel == x.numel);
  with_type(x.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d = elements<T>(d_out);
    const T* const in = elements<T>(x);
    const T* const tanh = elements<T>(saved.tanh);
    T* const result = elements<T>(d_x);
    for_chunks(*this, x.numel, [=](std::int64_t begin, std::int64_t end) {
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
