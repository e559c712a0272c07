// The lengths of synthetic sequences, drawn by the seed as a sampler draws from a data set.
#pragma once

#include <cstdint>

#include "core/experiment/length_settings.hpp"
#include "core/train/model.hpp"

namespace dstune {

/// The length, in tokens, of the `index`-th sequence of the synthetic data, whichever rank and step
/// it comes to: runs with the same settings and seed train on the same lengths in the same order,
/// however they split them into batches.
///
/// mix() is SplitMix64. bits = mix(mix(mix(seed) ^ 0x6c656e67746873) ^ index), u = (bits >> 11) *
/// 2^-53, and v is made of mix(bits) in the same way. The length is clamped to least .. most and is
/// - histogram: the floor(u n)-th, counted from 0, of all n sequences in order of length;
/// - uniform: least + floor(u (most - least + 1));
/// - lognormal: floor(exp(ln(mean) - sigma^2 / 2 + sigma z) + 1/2) with z = sqrt(-2 ln(1 - u))
///   cos(2 pi v).
/// @param settings  must be varies()
std::int64_t draw_length(const LengthSettings& settings, std::uint64_t seed, std::uint64_t index);

/// A micro-batch of `count` rows, from row `first` of the data on. If it is padded, row r has
/// sequence r. If it is packed, row r has the sequences r 2^20, r 2^20 + 1 and so on, until it is
/// full.
/// @param row_length  tokens of a packed row
RowLengths draw_rows(const LengthSettings& settings, std::uint64_t seed, std::uint64_t first,
                     std::int64_t count, std::int64_t row_length);

/// The micro-batch that needs most memory. If it is padded, all rows have the longest length that
/// there is, but the last of several rows has the next shorter one, since a mask comes with
/// padding. If it is packed, it has the longest sequences, which have most labels and most scores.
RowLengths longest_rows(const LengthSettings& settings, std::int64_t count,
                        std::int64_t row_length);

}  // namespace dstune
