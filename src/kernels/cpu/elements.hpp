// Typed access to tensors, and loops that let the rank answer in between.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "core/device/device.hpp"
#include "core/device/dtype.hpp"
#include "core/device/tensor.hpp"
#include "kernels/cpu/call_apart.hpp"
#include "kernels/element_types.hpp"

namespace dstune::cpu {

/// The one element of `tensor`: fp32 or fp64.
inline double number_in(Tensor tensor) {
  return tensor.dtype == DType::fp64 ? *elements<double>(tensor)
                                     : static_cast<double>(*elements<float>(tensor));
}
inline void set_number(Tensor tensor, double value) {
  if (tensor.dtype == DType::fp64) {
    *elements<double>(tensor) = value;
  } else {
    *elements<float>(tensor) = static_cast<float>(value);
  }
}

template <class T>
T* row(Matrix matrix, std::int64_t i) {
  return static_cast<T*>(matrix.data) + i * matrix.stride;
}

/// Converts as many of the first elements as go by whole vectors between fp16 and fp32, none of
/// other types.
/// @returns how many
template <class From, class To>
std::int64_t convert_half([[maybe_unused]] const From* in, [[maybe_unused]] To* out,
                          [[maybe_unused]] std::int64_t count) {
  std::int64_t begin = 0;
#ifdef __F16C__  // g++ 12 does not vectorise the conversion of _Float16
  constexpr std::int64_t kLanes = 8;
  if constexpr (std::is_same_v<From, Float16> && std::is_same_v<To, float>) {
    for (; begin + kLanes <= count; begin += kLanes) {
      const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + begin));
      _mm256_storeu_ps(out + begin, _mm256_cvtph_ps(bits));
    }
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Float16>) {
    for (; begin + kLanes <= count; begin += kLanes) {
      const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(in + begin), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + begin), bits);
    }
  }
#endif
  return begin;
}

template <class From, class To>
void convert(const From* in, To* out, std::int64_t count) {
  call_apart(
      [](const From* from, To* to, std::int64_t size) {
        const std::int64_t begin = convert_half(from, to, size);
#pragma omp simd
        for (std::int64_t i = begin; i < size; ++i) to[i] = from_float<To>(to_float(from[i]));
      },
      in, out, count);
}

/// Row i of `matrix`, of any floating-point type, as floats.
inline void load_row(const Matrix& matrix, std::int64_t i, float* to) {
  with_type(matrix.dtype,
            [&]<class T>(std::type_identity<T>) { convert(row<T>(matrix, i), to, matrix.cols); });
}

/// The reverse, rounded.
inline void store_row(const float* from, const Matrix& matrix, std::int64_t i) {
  with_type(matrix.dtype,
            [&]<class T>(std::type_identity<T>) { convert(from, row<T>(matrix, i), matrix.cols); });
}

/// Elements of a block that stays in the first cache while it is converted and worked on.
constexpr std::int64_t kBlockElements = 1024;

/// At most kBlockElements of `in` as floats: themselves, or converted into `buffer`.
template <class T>
const float* as_floats(const T* in, std::int64_t count, float* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    return in;
  } else {
    convert(in, buffer, count);
    return buffer;
  }
}

/// Changes x[begin .. end) by f(float* values, offset, count), called for one block after another.
template <class T, class F>
void transform_blocks(T* x, std::int64_t begin, std::int64_t end, F f) {
  for (; begin < end; begin += kBlockElements) {
    const std::int64_t count = std::min(kBlockElements, end - begin);
    if constexpr (std::is_same_v<T, float>) {
      f(x + begin, begin, count);
    } else {
      std::array<float, kBlockElements> values;  // NOLINT(*-member-init): written by convert()
      convert(x + begin, values.data(), count);
      f(values.data(), begin, count);
      convert(values.data(), x + begin, count);
    }
  }
}

/// Elements between two ticks: about a millisecond of memory traffic.
constexpr std::int64_t kTickElements = std::int64_t{1} << 20U;

/// f(begin, end) over [0, count) in chunks, tick() before each.
template <class F>
void for_chunks(const Device& device, std::int64_t count, F f) {
  for (std::int64_t begin = 0; begin < count; begin += kTickElements) {
    device.tick();
    call_apart(f, begin, std::min(begin + kTickElements, count));
  }
}

/// f(i) for the rows of a matrix with `cols` columns, tick() now and then.
template <class F>
void for_rows(const Device& device, std::int64_t rows, std::int64_t cols, F f) {
  const std::int64_t rows_per_tick =
      std::max<std::int64_t>(1, kTickElements / std::max<std::int64_t>(1, cols));
  for (std::int64_t i = 0; i < rows; ++i) {
    if (i % rows_per_tick == 0) device.tick();
    call_apart(f, i);
  }
}

}  // namespace dstune::cpu
