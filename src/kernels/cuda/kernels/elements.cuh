// Tensors as kernels see them: typed elements, 16 bytes at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "core/device/dtype.hpp"
#include "core/device/tensor.hpp"

namespace dstune::cuda {

/// f(std::type_identity<T>{}) with the element type of `dtype`, which must be a floating-point one
/// of which tensors are made (not fp64).
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::fp32:
      return f(std::type_identity<float>{});
    case DType::bf16:
      return f(std::type_identity<__nv_bfloat16>{});
    case DType::fp16:
      return f(std::type_identity<__half>{});
    default:
      throw std::invalid_argument("no arithmetic on tensors that are not fp32, bf16 or fp16");
  }
}

template <class T>
T* elements(Tensor tensor) {
  return static_cast<T*>(tensor.data);
}

template <class T>
T* elements(Matrix matrix) {
  return static_cast<T*>(matrix.data);
}

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__half value) { return __half2float(value); }

/// Rounds to nearest even.
template <class T>
__device__ inline T from_float(float value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else {
    return value;
  }
}

/// a / b, none negative: much faster where both are below 2^32, as nearly always.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

/// What numbers are divided by again and again: for those below 2^31 a product and a shift
/// (Granlund and Montgomery 1994), as in the index arithmetic of PyTorch's kernels.
class Divisor {
 public:
  static constexpr std::int64_t kLimit = std::int64_t{1} << 31U;  ///< of what is divided fast

  /// @param value  0: nothing is divided
  explicit Divisor(std::int64_t value) : value_(value) {
    if (value <= 0 || value >= kLimit) return;
    while ((std::int64_t{1} << shift_) < value) ++shift_;
    const std::uint64_t rest = (std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(value);
    factor_ = static_cast<std::uint32_t>((rest << 32U) / static_cast<std::uint64_t>(value) + 1);
  }

  /// The divisor itself, which must be below 2^32.
  __device__ std::uint32_t operator*() const { return static_cast<std::uint32_t>(value_); }
  /// The quotient. @param number  not negative
  __device__ friend std::int64_t operator/(std::int64_t number, const Divisor& divisor) {
    if (number >= kLimit || divisor.factor_ == 0) return number / divisor.value_;
    const auto small = static_cast<std::uint32_t>(number);
    const auto high = (std::uint64_t{small} * divisor.factor_) >> 32U;
    return static_cast<std::uint32_t>(high + small) >> divisor.shift_;
  }

 private:
  std::int64_t value_;
  std::uint32_t factor_ = 0;  // 0: it is too large
  unsigned shift_ = 0;
};

/// What one thread moves at once, as far as a type allows.
constexpr int kPackBytes = 16;

/// Elements of the largest of these types in kPackBytes: what threads take together of operands of
/// several types.
template <class... T>
constexpr int kPackWidth = kPackBytes / static_cast<int>(std::max({sizeof(T)...}));

/// Elements that lie side by side and move together. More than kPackBytes move in several accesses.
template <class T, int kWidth>
struct alignas(std::min<std::size_t>(kPackBytes, sizeof(T) * kWidth)) Pack {
  T values[kWidth];
};

/// `from` must be aligned as the pack is (is_aligned()).
template <int kWidth, class T>
__device__ inline Pack<T, kWidth> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(from);
}

template <int kWidth, class T>
__device__ inline void store_pack(T* to, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
}

/// True if packs of kWidth can be read and written from `data` on.
template <int kWidth, class T>
inline bool is_aligned(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % alignof(Pack<T, kWidth>) == 0;
}

/// The same for every row of a matrix, which must be whole packs.
template <int kWidth, class T>
inline bool has_packed_rows(const Matrix& matrix) {
  return is_aligned<kWidth>(elements<const T>(matrix)) && matrix.cols % kWidth == 0 &&
         (matrix.rows <= 1 || matrix.stride % kWidth == 0);
}

/// What the formulas that backends share (src/kernels) compute with on a GPU, as PyTorch's kernels
/// do.
struct DeviceMath {
  struct Normal {
    float distribution;
    float exponential;
  };

  __host__ __device__ static float exp(float x) { return expf(x); }
  __host__ __device__ static float tanh(float x) { return tanhf(x); }
  __host__ __device__ static float log(float x) { return logf(x); }
  __host__ __device__ static float ceil(float x) { return ceilf(x); }
  __host__ __device__ static float root(float x) { return sqrtf(x); }
  __host__ __device__ static double root(double x) { return ::sqrt(x); }
  __host__ __device__ static Normal normal(float x) {
    constexpr float kSqrtHalf = 0.70710678F;
    return {0.5F * (1.0F + erff(x * kSqrtHalf)), expf(-0.5F * x * x)};
  }
};

}  // namespace dstune::cuda
