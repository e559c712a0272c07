// What the tiled kernels of attention read and write.
#pragma once

#include "core/device/operations/attention.hpp"
#include "kernels/cuda/attention/head_shape.hpp"
#include "kernels/cuda/attention/tiles.cuh"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

/// `out`, or its gradient.
inline Heads out_of(const Matrix& matrix, const AttentionShape& shape) {
  return {matrix, shape.head_size};
}

template <class T>
struct ForwardOperands {
  HeadShape shape;
  HeadRows<const T> q;
  HeadRows<const T> k;
  HeadRows<const T> v;
  HeadRows<T> out;
  float* lse;
  bool packed;  ///< all rows begin where packs do, and are whole packs
};

template <class T>
ForwardOperands<T> forward_operands(const Attention& op) {
  const AttentionShape& shape = op.shape;
  return {head_shape_of(shape),
          head_rows<const T>(op.q, shape.heads),
          head_rows<const T>(op.k, shape.kv_heads),
          head_rows<const T>(op.v, shape.kv_heads),
          head_rows<T>(op.out, shape),
          elements<float>(op.lse),
          have_packed_rows<T>({op.q, op.k, op.v, out_of(op.out, shape)}, shape)};
}

/// The two matrices of the own rows, and of the others: K and V, Q and d_O, or the reverse.
template <class T>
struct BackwardOperands {
  HeadShape shape;
  HeadRows<const T> own_k_or_q;
  HeadRows<const T> own_v_or_d_out;
  HeadRows<const T> other_q_or_k;
  HeadRows<const T> other_d_out_or_v;
  const float* lse;
  const float* d_dot_out;  ///< of each query, d_O . O
  HeadRows<T> d_k_or_q;
  HeadRows<T> d_v;  ///< where keys are the own rows
  bool packed;
};

template <class T>
BackwardOperands<T> backward_operands(const AttentionBackward& op, bool by_keys) {
  const AttentionShape& shape = op.shape;
  const auto q = head_rows<const T>(op.q, shape.heads);
  const auto k = head_rows<const T>(op.k, shape.kv_heads);
  const auto v = head_rows<const T>(op.v, shape.kv_heads);
  const auto d_out = head_rows<const T>(op.d_out, shape);
  const HeadShape heads = head_shape_of(shape);
  const float* const lse = elements<float>(op.lse);
  const float* const dot = elements<float>(op.workspace);
  const bool packed = have_packed_rows<T>(
      {op.q, op.k, op.v, op.d_q, op.d_k, op.d_v, out_of(op.d_out, shape)}, shape);
  if (!by_keys) {
    return {heads, q, d_out, k, v, lse, dot, head_rows<T>(op.d_q, shape.heads), {}, packed};
  }
  const auto d_k = head_rows<T>(op.d_k, shape.kv_heads);
  return {heads, k, v, q, d_out, lse, dot, d_k, head_rows<T>(op.d_v, shape.kv_heads), packed};
}

}  // namespace dstune::cuda
