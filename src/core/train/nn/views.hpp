// Parts of tensors on a tape.
#pragma once

#include <cstdint>
#include <vector>

#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// Columns [first, first + count) of x as they lie. Backward makes a tensor of the whole with zeros
/// beside them, as SliceBackward does: several of one tensor are added up.
Value slice(Tape& on, const Value& x, std::int64_t first, std::int64_t count);

enum class Parts {
  views,  ///< as they lie
  dense   ///< copies, for operations that take dense operands alone: x itself need not stay
};
/// `count` parts of the same width, columns of x; backward puts their gradients together
/// (torch.cat, the gradient of a split).
std::vector<Value> split(Tape& on, const Value& x, std::int64_t count, Parts parts = Parts::views);
/// Likewise of each of `heads` heads, columns of a dense x: stacks of heads (M, size), as they lie,
/// whose gradients are dense (M, heads * size).
std::vector<Value> split_heads(Tape& on, const Value& x, std::int64_t heads, std::int64_t count);

/// The elements of a dense x as (rows, cols).
Value reshape(Tape& on, const Value& x, std::int64_t rows, std::int64_t cols);

/// x.contiguous(), of which PyTorch makes a copy.
Value copy(Tape& on, const Value& x);

/// x, whose node keeps `other` until its backward.
Value hold(Tape& on, const Value& x, const Value& other);

/// x in another type; x itself if it has that.
Value cast(Tape& on, const Value& x, DType to);

}  // namespace dstune::nn
