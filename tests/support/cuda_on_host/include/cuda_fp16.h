// binary16 on the host: conversions, rounding to the nearest even as the device's.
#pragma once
#pragma GCC system_header

#include <bit>
#include <cstdint>

#include "vector_functions.h"

struct __half_raw {
  unsigned short x;
};

namespace cuda_on_host {

inline unsigned short half_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fffU;  // the NaN that the device makes
  std::uint32_t half = 0;
  if (magnitude >= 0x477ff000U) {  // rounds to 65536 or more
    half = 0x7c00U;
  } else if (magnitude < 0x38800000U) {  // subnormal: the adder rounds
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  } else {
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
  }
  return static_cast<unsigned short>(sign | half);
}

inline float half_value(unsigned short bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((rest & 0x3ffU) << 13U));
  const float magnitude = std::bit_cast<float>(rest << 13U) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

}  // namespace cuda_on_host

struct __half {
  unsigned short __x;

  __half() = default;
  constexpr __half(const __half_raw& raw) : __x(raw.x) {}
  __half(float value) : __x(cuda_on_host::half_bits(value)) {}
  __half(double value) : __half(static_cast<float>(value)) {}
  __half(int value) : __half(static_cast<float>(value)) {}

  operator __half_raw() const { return {__x}; }
  operator float() const { return cuda_on_host::half_value(__x); }
};

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  __half2(const __half& a, const __half& b) : x(a), y(b) {}
};

using half = __half;
using half2 = __half2;

inline float __half2float(__half value) { return value; }
inline __half __float2half(float value) { return {value}; }
inline __half __float2half_rn(float value) { return {value}; }
inline unsigned short __half_as_ushort(__half value) { return value.__x; }
inline __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }

inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline __half2 __float22half2_rn(float2 value) { return __floats2half2_rn(value.x, value.y); }
inline __half2 __float2half2_rn(float value) { return __floats2half2_rn(value, value); }
inline __half2 __half2half2(__half value) { return {value, value}; }
inline float2 __half22float2(__half2 value) { return {value.x, value.y}; }
inline __half __low2half(__half2 value) { return value.x; }
inline __half __high2half(__half2 value) { return value.y; }
inline float __low2float(__half2 value) { return value.x; }
inline float __high2float(__half2 value) { return value.y; }

inline __half __hadd(__half a, __half b) { return {float{a} + float{b}}; }
inline __half __hsub(__half a, __half b) { return {float{a} - float{b}}; }
inline __half __hmul(__half a, __half b) { return {float{a} * float{b}}; }
inline bool __hisnan(__half a) { return (a.__x & 0x7fffU) > 0x7c00U; }
inline int __hisinf(__half a) { return (a.__x & 0x7fffU) != 0x7c00U ? 0 : (a.__x >> 15U) != 0 ? -1 : 1; }
