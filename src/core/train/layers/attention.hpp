// Attention between a block's projections, as transformers runs it.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Keeps what PyTorch keeps of it for backward beside q, k and v themselves, which are their
/// owner's.
struct AttentionLayer {
  Buffer out{};  ///< (M, heads * head_size); what comes behind saves the same tensor
  Buffer lse{};  ///< fp32 (batch * heads * sequence)

  /// Writes `out`.
  void forward(const Workspace& work, const AttentionShape& shape, const Heads& q, const Heads& k,
               const Heads& v);

  /// Writes d_q, d_k and d_v, and frees what was saved, `out` too.
  /// @param shape  forward's
  /// @param d_out  gradient by `out`
  void backward(const Workspace& work, const AttentionShape& shape, const Buffer& d_out,
                const Heads& q, const Heads& k, const Heads& v, const Heads& d_q, const Heads& d_k,
                const Heads& d_v);
};

}  // namespace dstune::layers
