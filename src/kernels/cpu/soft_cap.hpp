// Caps on logits within kernels that read them as they are.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/log_sum_exp.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

struct NoCap {
  static float value(float x) { return x; }
  static float slope(float /*value*/) { return 1; }
};

/// c tanh(x / c)
struct TanhCap {
  float cap;

  float value(float x) const { return cap * fast_tanh(x / cap); }
  /// The derivative, by the value.
  float slope(float value) const {
    const float t = value / cap;
    return 1.0F - t * t;
  }
};

/// f of one of the two; 0: no cap.
template <class F>
void with_cap(double cap, F f) {
  if (cap == 0) {
    f(NoCap{});
  } else {
    f(TanhCap{static_cast<float>(cap)});
  }
}

/// Adds the capped values of at most kBlockElements.
template <class Cap>
void add_capped(ExpSum& sum, Cap cap, const float* x, std::int64_t count) {
  if constexpr (std::is_same_v<Cap, NoCap>) {
    sum.add(x, count);
  } else {
    std::array<float, kBlockElements> values;  // NOLINT(*-member-init): written below
    float* const to = values.data();
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) to[j] = cap.value(x[j]);
    sum.add(to, count);
  }
}

}  // namespace dstune::cpu
