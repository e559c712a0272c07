// RoPE (rotary position embeddings): the angles of Hugging Face's rope_parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Angle of pair j at position p: p * values[j]; cosines and sines are multiplied by `scaling`.
struct RotaryFrequencies {
  std::vector<double> values;
  double scaling = 1;
};

/// The RoPE settings of a config.json in the form of transformers 5: an object with rope_type,
/// rope_theta and what the type needs, made of rope_parameters, or of rope_scaling and rope_theta
/// of older files. Kinds: default, linear, dynamic, llama3, yarn, longrope.
/// @param max_positions  stands for an absent original_max_position_embeddings
/// @param columns        of a head that turn, even
/// @returns nothing, and problems, if it cannot be understood
std::optional<json::object> read_rope_parameters(const json::object& config,
                                                 std::int64_t max_positions, std::int64_t columns,
                                                 std::string_view pointer, Problems& problems);

/// @param parameters  made by read_rope_parameters()
/// @param sequence_length  of the micro-batch: longrope has two sets of factors. It is at most
///                         max_position_embeddings, up to which "dynamic" is the default.
RotaryFrequencies rotary_frequencies(const json::object& parameters, std::int64_t max_positions,
                                     std::int64_t columns, std::int64_t sequence_length);

}  // namespace dstune
