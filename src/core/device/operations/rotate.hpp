// Rotary position embedding (Su et al. 2021), as Hugging Face's apply_rotary_pos_emb.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Of each head's first r columns, halves a and b: out = (a cos - b sin, b cos + a sin) with the
/// position's angles; the other columns are copied. The inverse turns the other way: backward.
struct Rotate {
  Matrix in;  ///< (M, heads * head_stride): heads side by side
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t in_stride = 0;  ///< columns between the starts of heads of `in`, >= head_size
  Matrix cos;                  ///< (s, r / 2), the model's type; M a multiple of s
  Matrix sin;                  ///< (s, r / 2)
  bool inverse = false;
  Matrix out;  ///< (M, heads * head_size); may be `in` where its heads are dense
};

inline Work work_of(const Rotate& op) {
  const Operand out = op.out;
  return {"rotate", 3 * count(op.out), {Operand(op.in).of(out.bytes), op.cos, op.sin}, {out}};
}

}  // namespace dstune
