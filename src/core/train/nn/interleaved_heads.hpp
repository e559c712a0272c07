// Queries, keys and values of one product, interleaved by head, and heads that turn.
#pragma once

#include <cstdint>
#include <vector>

#include "core/train/layers/rotary.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// x.view(..., heads, -1).chunk(parts, dim=-1): stacks of heads (M, size), as they lie in x;
/// backward puts their gradients (M, heads * size) together.
/// @param x  (M, heads * parts * size), dense
std::vector<Value> chunk_heads(Tape& on, const Value& x, std::int64_t heads, std::int64_t parts);

/// apply_rotary_pos_emb, of which only the angles are saved.
/// @param x       a stack of heads (M, size)
/// @param rotary  outlives the step
/// @returns (M, heads * size)
Value turn_heads(Tape& on, const layers::Rotary& rotary, const Value& x);

}  // namespace dstune::nn
