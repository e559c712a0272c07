// The tokens that a decoder reads to learn its labels.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out[i] = labels[i - 1] within a sequence, and `start` at its beginning: T5's _shift_right().
struct ShiftTokens {
  Tensor labels;              ///< int64, whole sequences
  std::int64_t sequence = 1;  ///< the length of one
  std::int64_t start = 0;     ///< decoder_start_token_id
  Tensor out;                 ///< int64, as many
};

inline Work work_of(const ShiftTokens& op) { return {"shift_tokens", 0, {op.labels}, {op.out}}; }

}  // namespace dstune
