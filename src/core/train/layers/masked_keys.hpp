// What transformers hands to scaled dot product attention where a window hides keys.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// A sequence as long as the window needs a mask, which PyTorch takes as numbers of the model's
/// type and keeps, and with which keys and values shared among heads are repeated for each
/// (sdpa_attention_forward and its repeat_kv, transformers 5.23), as they are for heads of more
/// than 256 columns. The attention operation needs neither: the mask and the copies stand for the
/// memory and for what moves.
struct MaskedKeys {
  AttentionShape shape;  ///< batch and sequence too

  bool has_mask() const { return shape.window > 0 && shape.window <= shape.sequence; }
  bool repeats() const;

  /// Saved: nothing without a mask.
  Buffer make_mask(const Workspace& work) const;

  /// @param keys  or values (M, kv_heads * head_size)
  /// @returns them, or as many of them behind one another as there are heads to each
  Buffer repeated(const Workspace& work, Buffer keys) const;

  /// Room for the gradient by repeated(): the attention writes the first part.
  Buffer gradient_room(const Workspace& work) const;
  /// @returns the gradient by `keys`
  Buffer summed(const Workspace& work, Buffer d_repeated) const;

 private:
  std::int64_t columns() const { return shape.kv_heads * shape.head_size; }
  std::int64_t copies() const { return repeats() ? shape.heads / shape.kv_heads : 1; }
};

}  // namespace dstune::layers
