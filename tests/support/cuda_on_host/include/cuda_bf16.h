// bfloat16 on the host: conversions, rounding to the nearest even as the device's.
#pragma once
#pragma GCC system_header

#include <bit>
#include <cstdint>

#include "vector_functions.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  unsigned short __x;

  __nv_bfloat16() = default;
  constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : __x(raw.x) {}
  __nv_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    // A NaN becomes the one that the device makes.
    __x = static_cast<unsigned short>(nan ? 0x7fffU : (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
  }
  __nv_bfloat16(double value);
  __nv_bfloat16(int value) : __nv_bfloat16(static_cast<double>(value)) {}

  operator __nv_bfloat16_raw() const { return {__x}; }
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(__x) << 16U); }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  __nv_bfloat162(const __nv_bfloat16& a, const __nv_bfloat16& b) : x(a), y(b) {}
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline __nv_bfloat16 __float2bfloat16(float value) { return {value}; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {value}; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.__x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }

/// Rounds once: a double is first rounded to odd as a float, which keeps what decides.
inline __nv_bfloat16 __double2bfloat16(double value) {
  auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) != value && nearest == nearest) {
    auto bits = std::bit_cast<std::uint32_t>(nearest);
    const double magnitude = value < 0 ? -value : value;
    const double rounded = nearest < 0 ? -static_cast<double>(nearest) : static_cast<double>(nearest);
    if ((bits & 1U) == 0) bits += rounded < magnitude ? 1U : ~0U;
    nearest = std::bit_cast<float>(bits);
  }
  return {nearest};
}
inline __nv_bfloat16::__nv_bfloat16(double value) { *this = __double2bfloat16(value); }

inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return __floats2bfloat162_rn(value.x, value.y); }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return __floats2bfloat162_rn(value, value); }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
inline float2 __bfloat1622float2(__nv_bfloat162 value) { return {value.x, value.y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
inline float __low2float(__nv_bfloat162 value) { return value.x; }
inline float __high2float(__nv_bfloat162 value) { return value.y; }

inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} + float{b}}; }
inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} - float{b}}; }
inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} * float{b}}; }
inline bool __hisnan(__nv_bfloat16 a) { return (a.__x & 0x7fffU) > 0x7f80U; }
inline int __hisinf(__nv_bfloat16 a) { return (a.__x & 0x7fffU) != 0x7f80U ? 0 : (a.__x >> 15U) != 0 ? -1 : 1; }
