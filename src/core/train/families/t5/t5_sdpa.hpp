// T5's scaled_dot_product_attention, whose mask is the bias.
#pragma once

#include "core/train/families/t5/t5_scores.hpp"

namespace dstune::t5 {

/// What PyTorch's memory-efficient kernel keeps beside q, k, v and the output: the log-sum-exp, and
/// the mask of (heads, queries, keys) numbers, which every layer makes for itself; of a causal one
/// a byte per pair too. Scores are computed for one sequence at a time, and kept by nobody.
class SdpaScores {
 public:
  /// @returns (rows of queries, width)
  Buffer forward(const Call& call, const Buffer& q, const Buffer& k, const Buffer& v,
                 const PositionBias& bias);

  /// Frees what was saved. The gradient of a learnt bias has the size of all scores, as PyTorch's.
  Gradients backward(const Call& call, const Buffer& d_out, const Buffer& q, const Buffer& k,
                     const Buffer& v, PositionBias& bias);

 private:
  /// The probabilities of a sequence, and what dropout leaves of them (itself where nothing drops).
  struct Probabilities {
    Buffer whole;
    Buffer mask;
    Buffer left;
  };
  Probabilities probabilities(const Call& call, const Buffer& q, const Buffer& k,
                              const PositionBias& bias, std::int64_t sequence) const;
  /// Writes d_v and d_scores of one sequence.
  void differentiate(const Call& call, const Probabilities& probs, const Matrices& d_out,
                     const Matrices& v, const Matrices& d_v, const Tensor& d_scores) const;

  Buffer lse_;      // fp32 (rows of queries, heads)
  Buffer stacked_;  // the mask
  Buffer visible_;  // one byte per pair
};

}  // namespace dstune::t5
