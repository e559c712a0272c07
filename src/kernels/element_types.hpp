// Typed access to the elements of tensors in host memory.
#pragma once

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

}  // namespace dstune
