// Typed access to the elements of tensors in host memory.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "core/device/dtype.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// f(std::type_identity<T>{}) with the element type of `dtype`, which must be a floating-point one.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::bf16:
      return f(std::type_identity<BFloat16>{});
    case DType::fp16:
      return f(std::type_identity<Float16>{});
    case DType::fp32:
      break;
    case DType::int8:
      throw std::invalid_argument("no arithmetic on int8 tensors");
    case DType::uint8:
      throw std::invalid_argument("no arithmetic on uint8 tensors");
    case DType::int64:
      throw std::invalid_argument("no arithmetic on int64 tensors");
    case DType::fp64:
      throw std::invalid_argument("no arithmetic on fp64 tensors");
  }
  return f(std::type_identity<float>{});
}

template <class T>
T* elements(Tensor tensor) {
  return static_cast<T*>(tensor.data);
}

/// 1 if it is inf or NaN: the exponent is all ones.
inline std::uint32_t is_special(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7f800000U) == 0x7f800000U ? 1U : 0U;
}
inline std::uint32_t is_special(BFloat16 value) {
  return (value.bits & 0x7f80U) == 0x7f80U ? 1U : 0U;
}
inline std::uint32_t is_special(Float16 value) {
  return (value.bits & 0x7c00U) == 0x7c00U ? 1U : 0U;
}

/// Whether any of `count` elements is.
template <class T>
bool any_special(const T* x, std::int64_t count) {
  std::uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (std::int64_t i = 0; i < count; ++i) any |= is_special(x[i]);
  return any != 0;
}

}  // namespace dstune
