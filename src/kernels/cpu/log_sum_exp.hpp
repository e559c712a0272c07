// The logarithm of a sum of exponentials, block after block.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/activations.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

/// f(const float* block, offset, count) for the blocks of x[0 .. count).
template <class T, class F>
void for_blocks(const T* x, std::int64_t count, F f) {
  for (std::int64_t begin = 0; begin < count; begin += kBlockElements) {
    const std::int64_t part = std::min(kBlockElements, count - begin);
    std::array<float, kBlockElements> values;  // NOLINT(*-member-init): written by as_floats()
    f(as_floats(x + begin, part, values.data()), begin, part);
  }
}

/// The sum of exponentials of some values, relative to the largest.
struct ExpSum {
  float largest = -std::numeric_limits<float>::infinity();
  float sum = 0;

  void add(const float* x, std::int64_t count) {
    float now = largest;
#pragma omp simd reduction(max : now)
    for (std::int64_t j = 0; j < count; ++j) now = x[j] > now ? x[j] : now;
    float added = 0;
#pragma omp simd reduction(+ : added)
    for (std::int64_t j = 0; j < count; ++j) added += fast_exp(x[j] - now);
    sum = (sum == 0 ? 0 : sum * std::exp(largest - now)) + added;
    largest = now;
  }

  /// Likewise, of the capped values of at most kBlockElements.
  template <class Cap>
  void add_capped(Cap cap, const float* x, std::int64_t count) {
    if constexpr (std::is_same_v<Cap, NoCap>) {
      add(x, count);
    } else {
      std::array<float, kBlockElements> values;  // NOLINT(*-member-init): written below
      float* const to = values.data();
#pragma omp simd
      for (std::int64_t j = 0; j < count; ++j) to[j] = cap.value(x[j]);
      add(to, count);
    }
  }

  float log_sum() const { return largest + std::log(sum); }
};

}  // namespace dstune::cpu
