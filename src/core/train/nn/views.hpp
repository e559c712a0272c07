// Parts of tensors on a tape.
#pragma once

#include <cstdint>
#include <vector>

#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// Columns [first, first + count) of x as they lie. Backward makes a tensor of the whole with zeros
/// beside them, as SliceBackward does; the tensors of several slices are added up.
Value slice(Tape& on, const Value& x, std::int64_t first, std::int64_t count);

enum class Parts {
  views,  ///< views of x
  dense   ///< copies, for operations that take only dense operands: x itself need not stay
};
/// `count` parts of the same width, columns of x; backward joins their gradients (torch.cat, the
/// gradient of a split).
std::vector<Value> split(Tape& on, const Value& x, std::int64_t count, Parts parts = Parts::views);
/// `count` parts of each of `heads` heads, which are columns of a dense x. Each part is a stack of
/// heads (M, size), as they lie, whose gradient is dense (M, heads * size).
std::vector<Value> split_heads(Tape& on, const Value& x, std::int64_t heads, std::int64_t count);

/// The elements of a dense x as (rows, cols).
Value reshape(Tape& on, const Value& x, std::int64_t rows, std::int64_t cols);

/// x.contiguous(), where PyTorch makes a copy.
Value copy(Tape& on, const Value& x);

/// x as the output of a node that keeps `other` until its backward.
Value hold(Tape& on, const Value& x, const Value& other);

/// x in another type; x itself if it has that type.
Value cast(Tape& on, const Value& x, DType to);

}  // namespace dstune::nn
