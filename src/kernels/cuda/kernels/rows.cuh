// Blocks that go through the rows of matrices, a pack of columns at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

/// The rows of a matrix, as kernels take it.
template <class T>
struct RowsOf {
  T* data = nullptr;
  std::int64_t stride = 0;

  __device__ T* operator[](std::int64_t row) const { return data + row * stride; }
};

template <class T>
RowsOf<T> rows_of(const Matrix& matrix) {
  return {static_cast<T*>(matrix.data), matrix.stride};
}

/// Threads of a block for rows of `packs` packs, `per_thread` each: whole warps, and no more than a
/// short row has work for.
inline int threads_for_row(std::int64_t packs, int per_thread, int most) {
  const std::int64_t warps = (packs + 32 * per_thread - 1) / (32 * per_thread);
  return static_cast<int>(std::clamp<std::int64_t>(warps, 1, most / 32)) * 32;
}

/// f(std::integral_constant<int, width>{}) with kWidth, if all matrices' rows can be read and
/// written in such packs, else with 1.
template <class T, int kWidth = kPackWidth<T>, class F>
void with_row_width(std::initializer_list<Matrix> matrices, F&& f) {
  const bool packed = std::all_of(matrices.begin(), matrices.end(), [](const Matrix& matrix) {
    return has_packed_rows<kWidth, T>(matrix);
  });
  if (packed) return f(std::integral_constant<int, kWidth>{});
  f(std::integral_constant<int, 1>{});
}

/// A vector as a matrix of one row.
inline Matrix as_row(const Tensor& tensor) { return as_matrix(tensor, 1, tensor.numel); }

}  // namespace dstune::cuda
