// Element types of tensors, and the conversions of the two 16-bit ones.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"

namespace dstune {

/// int8 tensors hold quantised values (ZeRO++), as messages do: they are only quantised, copied,
/// sent and dequantised. int4 values are int8 tensors with two values per element. fp64 is for
/// single numbers, which ranks add up. uint8 is for flags, of which ranks take the maximum. int64
/// is for tokens, labels and positions; it is never sent, and there is no arithmetic on it.
enum class DType { fp32, bf16, fp16, int8, fp64, uint8, int64 };

constexpr Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
    case DType::int64:
      return 8;
    case DType::fp32:
      return 4;
    case DType::bf16:
    case DType::fp16:
      return 2;
    case DType::int8:
    case DType::uint8:
      break;
  }
  return 1;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return "fp64";
    case DType::int64:
      return "int64";
    case DType::fp32:
      return "fp32";
    case DType::bf16:
      return "bf16";
    case DType::fp16:
      return "fp16";
    case DType::uint8:
      return "uint8";
    case DType::int8:
      break;
  }
  return "int8";
}

/// The bits of a bfloat16. Arithmetic is done in float: only conversions exist.
struct BFloat16 {
  std::uint16_t bits;
};

/// The bits of an IEEE binary16, for conversions only.
struct Float16 {
  std::uint16_t bits;
};

inline float to_float(float value) { return value; }

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

inline float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t rest = value.bits & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((rest & 0x3ffU) << 13U));
  // Multiplying by 2^112 adjusts the exponent's bias and is right for subnormals as well.
  const float magnitude = std::bit_cast<float>(rest << 13U) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

template <class T>
T from_float(float value);

template <>
inline float from_float<float>(float value) {
  return value;
}

/// Rounds to nearest even; NaN stays NaN.
template <>
inline BFloat16 from_float<BFloat16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
}

/// Rounds to nearest even; a value beyond 65504 (after rounding) becomes infinity; NaN stays NaN.
template <>
inline Float16 from_float<Float16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000U) {
    half = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // rounds to 65536 or more
    half = 0x7c00U;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: subnormal, the adder does the rounding
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  } else {
    half = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

}  // namespace dstune
