// Causal scaled dot product attention without the scores (Dao et al. 2022).
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Dimensions of one attention call. The heads lie side by side in a row of q, k, v and out.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  double dropout = 0;      ///< probability; the mask comes from the seed and is never stored
  std::uint64_t seed = 0;  ///< backward must be given the forward's
};

/// For each head O = dropout(softmax(Q K^T / sqrt(head_size), causal)) V, without storing the
/// scores.
struct Attention {
  AttentionShape shape;
  Matrix qkv;        ///< (M, 3h): q, k, v side by side
  Tensor lse;        ///< written: fp32 (batch * heads * sequence), log-sum-exp of the scores
  Tensor workspace;  ///< fp32, Device::attention_workspace() elements
  Matrix out;        ///< (M, h)
};

struct AttentionBackward {
  AttentionShape shape;
  Matrix d_out;
  Matrix qkv;
  Matrix out;
  Tensor lse;
  Tensor workspace;
  Matrix d_qkv;
};

/// Score matrices above the diagonal are never computed, hence half of 4 b a s^2 d.
inline double causal_flops(const AttentionShape& shape) {
  return 2 * static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
         static_cast<double>(shape.sequence) * static_cast<double>(shape.sequence) *
         static_cast<double>(shape.head_size);
}

inline Work work_of(const Attention& op) {
  return {"attention", causal_flops(op.shape), {op.qkv}, {op.lse, op.out}};
}
// Backward recomputes the scores: five products of the size of forward's two.
inline Work work_of(const AttentionBackward& op) {
  return {"attention_backward",
          2.5 * causal_flops(op.shape),
          {op.d_out, op.qkv, op.out, op.lse},
          {op.d_qkv}};
}

}  // namespace dstune
