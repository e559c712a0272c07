// What the kernels of attention must know of its heads.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// An AttentionShape as kernels take it. The index of a head of q is batch * heads + head, that of
/// one of k and v batch * kv_heads + head: which serves heads served * it and on.
struct HeadShape {
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t count = 0;     ///< of heads of q in all
  std::int64_t kv_count = 0;  ///< of k and v
  std::int64_t served = 1;    ///< heads of q by one of k and v
  std::int64_t back = 0;      ///< query i sees the keys [i - back, i + ahead] that there are
  std::int64_t ahead = 0;
  int size = 0;
  float scale = 0;              ///< of the scores
  float softcap = 0;            ///< of the scores after it; 0: none
  float keep_factor = 1;        ///< of a probability that is kept
  std::uint32_t threshold = 0;  ///< of dropout's 16 bits; 0: none is dropped
  std::uint64_t seed = 0;
};

HeadShape head_shape_of(const AttentionShape& shape);

/// The rows of all heads in a matrix in which they lie side by side: row i of head h at
/// first + h / heads * sequence * stride + h % heads * head_stride + i * stride.
template <class T>
struct HeadRows {
  T* first = nullptr;
  std::int64_t stride = 0;
  std::int64_t heads = 1;  ///< of a row
  std::int64_t head_stride = 0;
};

/// @param count  of heads in a row
template <class T>
HeadRows<T> head_rows(const Heads& heads, std::int64_t count) {
  return {static_cast<T*>(heads.matrix.data), heads.matrix.stride, count, heads.stride};
}

/// The rows of `out`, or of its gradient.
template <class T>
HeadRows<T> head_rows(const Matrix& matrix, const AttentionShape& shape) {
  return {static_cast<T*>(matrix.data), matrix.stride, shape.heads, shape.head_size};
}

}  // namespace dstune::cuda
