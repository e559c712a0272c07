// Attention with full matrices of scores: transformers' eager_attention_forward.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// transformers has no sdpa for capped scores: such a model is eager unless it is asked for flash.
inline bool is_eager(const Workspace& work, const AttentionShape& shape) {
  return work.attention == AttentionKind::eager ||
         work.attention == AttentionKind::eager_torch_1_10 ||
         (work.attention == AttentionKind::sdpa && shape.softcap > 0);
}

/// In what the softmax computes: the model's dtype (GPT-2, BERT), or torch.float32 with its result
/// cast back, as nearly all others.
enum class SoftmaxType { model, fp32 };

/// Buffers live as PyTorch's tensors do. What is kept for backward, S the scores of all heads: q, k
/// and v as batched products take them, S of the softmax, S of its cast where there is one and
/// nothing drops out; with dropout a byte per score and S of what is left; S of a cap's tanh; with
/// eager_torch_1_10 S of the softmax's input.
///
/// torch.matmul() copies what does not lie as torch.bmm() wants it, which is all but the heads of a
/// single sequence; repeat_kv() copies k and v where heads share them.
class EagerAttention {
 public:
  explicit EagerAttention(SoftmaxType softmax_type) : type_(softmax_type) {}

  /// @param mask  from attention_mask(); empty: one of its own while this runs, or none where every
  ///              query sees every key
  /// @returns (M, heads * head_size)
  Buffer forward(const Workspace& work, const AttentionShape& shape, const Heads& q, const Heads& k,
                 const Heads& v, const Buffer* mask);

  /// True if backward needs the q, k and v that forward was given.
  static bool reads_inputs(const AttentionShape& shape) { return shape.batch == 1; }

  /// Up to the gradients of q, k and v, which it keeps; frees all that was saved.
  /// @param owner  of d_out: it is freed when its last reader is done; nullptr: it is not
  void backward(const Workspace& work, const AttentionShape& shape, const Heads& q, const Heads& k,
                const Heads& v, const Buffer& d_out, Buffer* owner);
  bool has_gradients() const { return static_cast<bool>(d_q_); }
  /// Writes those gradients, and frees them.
  void hand_over(const Workspace& work, const AttentionShape& shape, const Heads& d_q,
                 const Heads& d_k, const Heads& d_v);

 private:
  Buffer scores(const Workspace& work, const AttentionShape& shape, const Heads& q, const Heads& k);
  Buffer cap(const Workspace& work, const AttentionShape& shape, Buffer scores);
  void probabilities(const Workspace& work, const AttentionShape& shape, Buffer scores);
  void drop(const Workspace& work, const AttentionShape& shape);
  Buffer scores_gradient(const Workspace& work, const AttentionShape& shape, Buffer d_probs);
  Buffer cap_gradient(const Workspace& work, const AttentionShape& shape, Buffer d_scores);
  DType dtype_of_softmax(const Workspace& work) const {
    return type_ == SoftmaxType::fp32 ? DType::fp32 : work.dtype;
  }

  SoftmaxType type_;
  Buffer q_;  // copies
  Buffer k_;
  Buffer v_;
  Buffer tanh_;
  Buffer softmax_input_;
  Buffer softmax_;
  Buffer probs_;    // that multiplied v; empty: softmax_ itself
  Buffer dropped_;  // one byte per score: 1 if it is kept
  Buffer d_q_;
  Buffer d_k_;
  Buffer d_v_;
};

/// The mask that a transformer makes once for all its layers of this shape and keeps until its
/// forward ends; empty where none is made: not eager, or every query sees every key.
Buffer attention_mask(const Workspace& work, const AttentionShape& shape);

}  // namespace dstune::layers
