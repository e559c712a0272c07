// The rows of a micro-batch that have a label.
#pragma once

#include <cstdint>

#include "core/train/tape/tape.hpp"

namespace dstune::nn {

/// N, the sum over the sequences of their lengths less one: the last position of each has no next
/// token, and padding has none.
std::int64_t labelled_rows(const BatchContext& context);

/// The next tokens, int64 (M), -1 in rows without a label.
Value next_tokens(Tape& on, Tensor tokens);

/// The rows with a label, dense, as TRL's losses take them. The gradient by the other rows is zero.
/// @param x  (M, cols)
/// @returns (N, cols)
Value take_labelled_rows(Tape& on, const Value& x);
/// The next tokens of the labelled rows, int64 (N).
Value take_labels(Tape& on, Tensor tokens);

}  // namespace dstune::nn
