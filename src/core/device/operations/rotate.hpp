// Rotary position embedding (Su et al. 2021), as Hugging Face's apply_rotary_pos_emb.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// RoPE of each head's first r columns, halves a and b: out = (a cos - b sin, b cos + a sin) with
/// the position's angles; the other columns are copied. The inverse turns the other way: backward.
struct Rotate {
  Matrix in;  ///< (M, heads * in_stride): heads side by side
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t in_stride = 0;  ///< columns between the starts of heads of `in`, >= head_size
  Matrix cos;                  ///< (s, r / 2), the model's type; M a multiple of s
  Matrix sin;                  ///< (s, r / 2)
  bool inverse = false;
  Tensor scratch;  ///< of out's type, rotate_scratch() elements
  Matrix out;      ///< (M, heads * head_size), dense; not `in`
};

/// The elements that PyTorch's chain of kernels holds at its highest, beside `in` and `out`.
constexpr std::int64_t rotate_scratch(std::int64_t elements) { return 2 * elements; }

// Forward: times cos; minus the half, and the halves together; times sin; the sum. Backward: times
// cos, times sin, minus the half, then of each half a full tensor with zeros, added.
inline Work work_of(const Rotate& op) {
  const Operand out = op.out;
  const Operand in = Operand(op.in).of(out.bytes);
  const Operand half = in.of(out.bytes / 2);
  const Operand scratch = Operand(op.scratch).of(out.bytes);
  Work work{"rotate", 3 * count(op.out), {in, op.cos, in, op.sin}, {out, scratch}};
  if (op.inverse) {
    work.reads.add({half, half, half, out, scratch, out, scratch});
    work.writes.add({half, scratch, half, scratch, half, out, out});
  } else {
    work.reads.add({half, scratch, scratch, out});
    work.writes.add({half, scratch, out});
  }
  return work;
}

}  // namespace dstune
