// Rotary position embeddings on a tape.
#pragma once

#include <cstdint>

#include "core/train/layers/rotary.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// apply_rotary_pos_emb of `heads` heads, columns that lie one beside the other.
/// @param rotary  outlives the step
/// @returns (M, heads * head_size), dense
Value turn(Tape& on, const layers::Rotary& rotary, const Value& x, std::int64_t heads);

}  // namespace dstune::nn
