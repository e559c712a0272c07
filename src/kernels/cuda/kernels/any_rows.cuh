// Rows of any length, one behind the other, so that they begin anywhere: 50257 logits do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/device/tensor.hpp"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

/// A row as a block goes through it: its packs of kWidth, and the elements before and behind.
template <int kWidth>
class AnyRow {
 public:
  template <class T>
  __device__ AnyRow(const T* row, std::int64_t cols) : cols_(cols) {
    const std::uintptr_t index = reinterpret_cast<std::uintptr_t>(row) / sizeof(T);
    head_ = min(static_cast<std::int64_t>((kWidth - index % kWidth) % kWidth), cols);
    packs_ = (cols - head_) / kWidth;
  }

  /// f(std::integral_constant<int, width>, column) for packs and single elements.
  template <class F>
  __device__ void forward(F f) const {
    ends(f);
#pragma unroll 4
    for (std::int64_t p = threadIdx.x; p < packs_; p += blockDim.x) f(kPack, head_ + p * kWidth);
  }
  /// The same, the last packs first.
  template <class F>
  __device__ void backward(F f) const {
#pragma unroll 4
    for (std::int64_t p = packs_ - 1 - threadIdx.x; p >= 0; p -= blockDim.x) {
      f(kPack, head_ + p * kWidth);
    }
    ends(f);
  }

 private:
  static constexpr std::integral_constant<int, kWidth> kPack{};
  static constexpr std::integral_constant<int, 1> kElement{};

  template <class F>
  __device__ void ends(F f) const {
    if constexpr (kWidth > 1) {
      const std::int64_t i = threadIdx.x;
      const std::int64_t tail = head_ + packs_ * kWidth;
      if (i < head_) f(kElement, i);
      if (tail + i < cols_) f(kElement, tail + i);
    }
  }

  std::int64_t cols_;
  std::int64_t head_;
  std::int64_t packs_;
};

/// f(std::integral_constant<int, width>{}): packs of T if the rows of all matrices begin alike
/// within them.
template <class T = float, class F>
void with_any_row_width(std::initializer_list<Matrix> matrices, F&& f) {
  constexpr int kWidth = kPackWidth<T>;
  const auto place = [](const Matrix& matrix, std::int64_t row) {
    const auto* const begin = static_cast<const T*>(matrix.data) + row * matrix.stride;
    return reinterpret_cast<std::uintptr_t>(begin) / sizeof(T) % kWidth;
  };
  const Matrix& first = *matrices.begin();
  const bool alike = std::all_of(matrices.begin(), matrices.end(), [&](const Matrix& matrix) {
    return place(matrix, 0) == place(first, 0) && place(matrix, 1) == place(first, 1);
  });
  if (alike) return f(std::integral_constant<int, kWidth>{});
  f(std::integral_constant<int, 1>{});
}

}  // namespace dstune::cuda
