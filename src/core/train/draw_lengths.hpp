// The lengths of synthetic sequences, drawn by the seed as a sampler draws from a data set.
#pragma once

#include <cstdint>

#include "core/experiment/length_settings.hpp"
#include "core/train/model.hpp"

namespace dstune {

/// Tokens of the `index`-th sequence of the synthetic data, whichever rank and step it comes to:
/// runs with the same settings and seed train on the same lengths in the same order, however they
/// split them into batches.
///
/// With SplitMix64 as mix(): bits = mix(mix(mix(seed) ^ 0x6c656e67746873) ^ index), u = (bits >>
/// 11) * 2^-53 and likewise v of mix(bits). Then, clamped to least .. most,
/// - histogram: the floor(u n)-th, counted from 0, of all n sequences in order of length;
/// - uniform: least + floor(u (most - least + 1));
/// - lognormal: floor(exp(ln(mean) - sigma^2 / 2 + sigma z) + 1/2) with z = sqrt(-2 ln(1 - u))
///   cos(2 pi v).
/// @param settings  varies()
std::int64_t draw_length(const LengthSettings& settings, std::uint64_t seed, std::uint64_t index);

/// A micro-batch of `count` rows from the `first`-th on of the data. Padded: row r has sequence r.
/// Packed: row r has the sequences r 2^20, r 2^20 + 1 and so on, until it is full.
/// @param row_length  tokens of a packed row
RowLengths draw_rows(const LengthSettings& settings, std::uint64_t seed, std::uint64_t first,
                     std::int64_t count, std::int64_t row_length);

/// The micro-batch that needs most. Padded: all have the longest length that there is, but for the
/// last, if there are several, which has the next shorter one: with padding comes a mask. Packed:
/// the longest ones, which have most labels and most scores.
RowLengths longest_rows(const LengthSettings& settings, std::int64_t count,
                        std::int64_t row_length);

}  // namespace dstune
