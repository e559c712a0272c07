// The rows that have a label, dense: what TRL's losses work on.
#pragma once

#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// N, the sum of the sequences' lengths less one: the last position of each has no next token, and
/// padding has none.
std::int64_t labelled_rows(const Workspace& work);

/// The next tokens, int64 (M), -1 in rows without a label.
Buffer next_tokens(const Workspace& work, Tensor tokens);

/// An activation of `rows` rows.
Buffer rows_of(const Workspace& work, std::int64_t rows, std::int64_t cols, DType dtype);

/// @param x  (M, cols)
/// @returns (N, cols)
Buffer take_labelled_rows(const Workspace& work, const Buffer& x, std::int64_t cols);
/// The next tokens, int64 (N).
Buffer take_labels(const Workspace& work, Tensor tokens);

/// The gradient of take_labelled_rows().
/// @param d_rows  (N, cols)
/// @returns (M, cols), zero in rows without a label
Buffer spread_labelled_rows(const Workspace& work, const Buffer& d_rows, std::int64_t cols);

}  // namespace dstune::layers
