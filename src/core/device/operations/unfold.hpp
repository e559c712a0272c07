// The windows that a convolution along sequences sees, as the operand of a product.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out(t, c k + i) = in(t + i - k / 2, c), or 0 where that is outside of t's sequence, with
/// k = out.cols / in.cols: rows times the weights (h_out, h k) of torch.nn.Conv1d are its result.
struct Unfold {
  Matrix in;                  ///< (M, h)
  std::int64_t sequence = 0;  ///< rows of each; divides M
  Matrix out;                 ///< (M, h k), k odd
};

/// in(t, c) = the sum of all elements of out that Unfold would have made of it, rounded once.
struct Fold {
  Matrix in;                  ///< (M, h k), k odd
  std::int64_t sequence = 0;  ///< as there
  Matrix out;                 ///< (M, h)
};

inline Work work_of(const Unfold& op) { return {"unfold", 0, {op.in}, {op.out}}; }
inline Work work_of(const Fold& op) { return {"fold", count(op.in), {op.in}, {op.out}}; }

}  // namespace dstune
