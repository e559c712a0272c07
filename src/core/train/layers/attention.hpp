// Attention between a block's projections, as transformers runs it.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/train/layers/eager_attention.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Attention as Workspace::attention says; to packed sequences one by one, so that it costs the sum
/// of their squares. Keeps what PyTorch keeps of it for backward, beside q, k
/// and v where reads_inputs(), which their owner keeps (docs/decisions/attention.md).
struct AttentionLayer {
  EagerAttention eager{SoftmaxType::fp32};

  Buffer out{};  ///< (M, heads * head_size); what comes behind saves the same tensor
  Buffer lse{};  ///< sdpa, flash: fp32 (batch * heads * sequence)
  /// sdpa with a mask, where heads share keys: what their copies take beyond k, which PyTorch frees
  /// and its owner here keeps, (M, (heads - kv_heads) * head_size). A single one is a view.
  Buffer repeated_k{};
  Buffer repeated_v{};
  Buffer bias{};  ///< sdpa with a mask: that mask as it is added to the scores

  /// Writes `out`.
  /// @param mask  of attention_mask(), shared by layers; nullptr: one of its own where it needs one
  void forward(const Workspace& work, const AttentionShape& shape, const Heads& q, const Heads& k,
               const Heads& v, const Buffer* mask = nullptr);

  /// False: PyTorch frees q, k and v when the attention module's forward is done, and backward does
  /// not read them.
  static bool reads_inputs(const Workspace& work, const AttentionShape& shape) {
    return !is_eager(work, shape) || EagerAttention::reads_inputs(shape);
  }

  /// What comes behind does not save `out`: it goes unless backward reads it.
  void forget_out(const Workspace& work, const AttentionShape& shape) {
    if (is_eager(work, shape)) out.reset();
  }

  /// As much of backward as PyTorch does before it makes room for d_q, d_k and d_v: an owner that
  /// does so too has PyTorch's peak.
  /// @param d_out  gradient by `out`; freed when its last reader is done
  void begin_backward(const Workspace& work, const AttentionShape& shape, const Heads& q,
                      const Heads& k, const Heads& v, Buffer& d_out);

  /// Writes d_q, d_k and d_v, and frees what was saved, `out` too.
  /// @param shape  forward's
  /// @param d_out  gradient by `out`; not read after begin_backward() has freed it
  void backward(const Workspace& work, const AttentionShape& shape, const Buffer& d_out,
                const Heads& q, const Heads& k, const Heads& v, const Heads& d_q, const Heads& d_k,
                const Heads& d_v);
};

}  // namespace dstune::layers
