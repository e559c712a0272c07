// T5's eager_attention_forward.
#pragma once

#include "core/train/families/t5/t5_scores.hpp"

namespace dstune::t5 {

/// Keeps q, k and v as batched products take them, the softmax in the model's type, and with
/// dropout a byte per score and what is left (see layers::EagerAttention).
class EagerScores {
 public:
  /// @param q  (rows of queries, width), as k and v of keys; those of a single sequence are not
  ///           copied, and backward needs them
  /// @returns (rows of queries, width)
  Buffer forward(const Call& call, const Buffer& q, const Buffer& k, const Buffer& v,
                 const PositionBias& bias);

  /// Frees what was saved, and d_out when its last reader is done.
  Gradients backward(const Call& call, Buffer d_out, const Buffer& q, const Buffer& k,
                     const Buffer& v, PositionBias& bias);

 private:
  void drop(const Call& call);
  Buffer scores_gradient(const Call& call, Buffer d_probs);

  Buffer q_;  // copies
  Buffer k_;
  Buffer v_;
  Buffer softmax_;
  Buffer probs_;    // that multiplied v; empty: softmax_ itself
  Buffer dropped_;  // one byte per score: 1 if it is kept
};

}  // namespace dstune::t5
