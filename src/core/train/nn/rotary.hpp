// Rotary position embeddings: the angles of a micro-batch's positions, and heads that they turn.
#pragma once

#include <cstdint>

#include "core/model/rotary_frequencies.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// Hugging Face's *RotaryEmbedding and apply_rotary_pos_emb. Cosines and sines are made once and
/// kept, in the model's type and for both halves of a head as in PyTorch. There every forward makes
/// them anew by some ten kernels of (sequence, r) numbers, and they live until the end of backward.
/// This object outlives the step.
class Rotary {
 public:
  /// Makes the cosines and sines of the positions 0 .. sequence_length - 1, times the scaling.
  Rotary(const BatchContext& context, const RotaryFrequencies& frequencies);

  /// Makes the angles of packed sequences. To be called before a forward whose sequences lie as in
  /// `context`, unless they all have one length and no padding.
  void arrange(const BatchContext& context);

  /// Turns the first 2 * frequencies columns of each head; nothing but the angles is saved.
  /// @param x  `heads` heads, as heads_of() finds them
  /// @returns (M, heads * head_size), dense
  Value operator()(Tape& on, const Value& x, std::int64_t heads) const;

 private:
  Value turn(const Tape& on, const Value& x, std::int64_t heads, bool inverse) const;
  Matrix half_of(const BatchContext& context, const Buffer& table, const Buffer& packed) const;
  Buffer pack(const BatchContext& context, const Buffer& table) const;

  std::int64_t half_;
  Buffer cos_;  ///< (sequence, 2 half), of which the first half of each row is read
  Buffer sin_;
  Buffer packed_cos_;  ///< (M, 2 half), begins anew in every sequence; empty: not packed
  Buffer packed_sin_;
};

}  // namespace dstune::nn
