// Rotary position embeddings: the angles of a micro-batch's positions, and heads that they turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/model/rotary_frequencies.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Hugging Face's *RotaryEmbedding and apply_rotary_pos_emb. Cosines and sines are made once and
/// kept, in the model's type and for both halves of a head as PyTorch's are: there every forward
/// makes them anew by some ten kernels of (sequence, r) numbers, and they live until the end of
/// backward.
class Rotary {
 public:
  /// Cosines and sines of the positions 0 .. sequence_length, times the scaling.
  Rotary(const Workspace& work, const RotaryFrequencies& frequencies);

  /// Before a forward whose sequences lie as in `work`, but for those of one length without
  /// padding: makes the angles of packed ones.
  void arrange(const Workspace& work);

  /// Some heads of `head_size` columns, the first 2 * frequencies of which turn.
  /// @param in  (M, heads * stride), heads `stride` columns apart
  /// @returns (M, heads * head_size)
  Buffer turn(const Workspace& work, const Matrix& in, std::int64_t heads, std::int64_t head_size,
              std::int64_t stride) const;
  /// The gradient by turn()'s `in`, dense, from that by its result.
  Buffer turn_back(const Workspace& work, const Buffer& d_out, std::int64_t heads,
                   std::int64_t head_size) const;

 private:
  struct Heads {
    std::int64_t count;
    std::int64_t size;
    std::int64_t stride;
  };

  Buffer run(const Workspace& work, const Matrix& in, const Heads& heads, bool inverse) const;
  Matrix half_of(const Workspace& work, const Buffer& table, const Buffer& packed) const;
  Buffer pack(const Workspace& work, const Buffer& table) const;

  std::int64_t half_;
  Buffer cos_;  ///< (sequence, 2 half), of which the first half of each row is read
  Buffer sin_;
  Buffer packed_cos_;  ///< likewise (M, 2 half): begins anew in every sequence; empty: not packed
  Buffer packed_sin_;
};

}  // namespace dstune::layers
