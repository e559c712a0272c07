// What the kernels of attention must know of its heads.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// An AttentionShape as kernels take it. A head's index is batch * heads + head.
struct HeadShape {
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t count = 0;  ///< of heads in all
  int size = 0;
  float scale = 0;              ///< of the scores
  float keep_factor = 1;        ///< of a probability that is kept
  std::uint32_t threshold = 0;  ///< of dropout's 16 bits; 0: none is dropped
  std::uint64_t seed = 0;
};

HeadShape head_shape_of(const AttentionShape& shape);

/// The rows of all heads in a matrix in which they lie side by side: row i of head h at
/// first + h / heads * sequence * stride + h % heads * size + i * stride.
template <class T>
struct HeadRows {
  T* first = nullptr;
  std::int64_t stride = 0;
};

/// @param part  0; of a matrix (M, 3h): 0, 1, 2 for q, k, v
template <class T>
HeadRows<T> head_rows(const Matrix& matrix, const AttentionShape& shape, std::int64_t part) {
  return {static_cast<T*>(matrix.data) + part * shape.heads * shape.head_size, matrix.stride};
}

}  // namespace dstune::cuda
