// Loops over elements, compiled once for each set of instructions.
#pragma once

#include <cstdint>
#include <type_traits>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/device/dtype.hpp"
#include "kernels/host/instruction_set.hpp"

namespace dstune::host {

// They are not inlined, since a function's instructions are those of the function that it is part
// of; `f`, which has none of its own, becomes part of them. It is a copy, so that what it captures
// by value stays in registers.

template <class F>
[[gnu::noinline]] void loop_plain(F f, std::int64_t begin, std::int64_t end) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) f(i);
}

template <class F>
DSTUNE_FOR_AVX2 [[gnu::noinline]] void loop_avx2(F f, std::int64_t begin, std::int64_t end) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) f(i);
}

template <class F>
DSTUNE_FOR_AVX512 [[gnu::noinline]] void loop_avx512(F f, std::int64_t begin, std::int64_t end) {
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) f(i);
}

/// f(i) for each i in [begin, end), in no order.
template <class F>
void loop(InstructionSet set, std::int64_t begin, std::int64_t end, F f) {
  switch (set) {
    case InstructionSet::avx512:
      return loop_avx512(f, begin, end);
    case InstructionSet::avx2:
      return loop_avx2(f, begin, end);
    case InstructionSet::plain:
      break;
  }
  loop_plain(f, begin, end);
}

#ifdef __x86_64__
// g++ 12 does not vectorise the conversions of fp16, for which processors have an instruction.
// They return how many of the elements they converted: as many as whole vectors have.

constexpr std::int64_t kHalfLanes = 8;

DSTUNE_FOR_AVX2 inline std::int64_t convert_vectors(const Float16* in, float* out,
                                                    std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(bits));
  }
  return i;
}

DSTUNE_FOR_AVX2 inline std::int64_t convert_vectors(const float* in, Float16* out,
                                                    std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kHalfLanes <= count; i += kHalfLanes) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bits);
  }
  return i;
}
#endif

/// out = in, rounded to nearest even.
template <class From, class To>
void convert(InstructionSet set, const From* in, To* out, std::int64_t count) {
  std::int64_t begin = 0;
#ifdef __x86_64__
  constexpr bool kHasVectors = (std::is_same_v<From, Float16> && std::is_same_v<To, float>) ||
                               (std::is_same_v<From, float> && std::is_same_v<To, Float16>);
  if constexpr (kHasVectors) {
    if (set != InstructionSet::plain) begin = convert_vectors(in, out, count);
  }
#endif
  loop(set, begin, count, [=](std::int64_t i) { out[i] = from_float<To>(to_float(in[i])); });
}

}  // namespace dstune::host
