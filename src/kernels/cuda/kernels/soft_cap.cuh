// Caps on logits within kernels that read them as they are.
#pragma once

#include <type_traits>

#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

struct NoCap {
  __device__ static float value(float x) { return x; }
  __device__ static float slope(float) { return 1.0F; }
};

/// c tanh(x / c)
struct TanhCap {
  float cap;

  __device__ float value(float x) const { return cap * tanhf(x / cap); }
  /// The derivative, by the value.
  __device__ float slope(float value) const {
    const float t = value / cap;
    return 1.0F - t * t;
  }
};

/// f of one of the two; 0: no cap.
template <class F>
void with_cap(double cap, F&& f) {
  if (cap == 0) return f(NoCap{});
  f(TanhCap{static_cast<float>(cap)});
}

/// The pack itself where there is no cap.
template <class Cap, class T, int kWidth>
__device__ inline auto capped(const Cap& cap, const Pack<T, kWidth>& pack) {
  if constexpr (std::is_same_v<Cap, NoCap>) {
    return pack;
  } else {
    Pack<float, kWidth> values;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) values.values[k] = cap.value(to_float(pack.values[k]));
    return values;
  }
}

}  // namespace dstune::cuda
