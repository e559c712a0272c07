// Which of attention's probabilities are dropped: four of them share a hash, in every backend.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/random_bits.hpp"

namespace dstune {

/// In every 16 x 16 of a head's scores those whose queries and keys differ by 0 or 8 are a group:
/// one thread has them when matrix instructions made the scores, and when they made the transposed
/// ones. Sixteen bits of a group's hash decide over each.
struct ScoreGroups {
  static constexpr std::uint64_t kTile = 16;
  static constexpr std::uint64_t kHalf = kTile / 2;

  /// @param sequence  queries, and keys, of the head
  constexpr explicit ScoreGroups(std::int64_t sequence)
      : per_row((static_cast<std::uint64_t>(sequence) + kTile - 1) / kTile * kHalf) {}

  /// The group's index; that of (query, key + 1) is one more where both keys are in one 8, that of
  /// (query + 1, key) per_row more where both queries are.
  constexpr std::uint64_t index(std::int64_t query, std::int64_t key) const {
    return half_of(query) * per_row + half_of(key);
  }

  static constexpr std::uint64_t half_of(std::int64_t row) {
    const auto place = static_cast<std::uint64_t>(row);
    return place / kTile * kHalf + place % kHalf;
  }

  std::uint64_t per_row;
};

/// Its place in its group, 0 .. 3.
constexpr unsigned score_place(std::int64_t query, std::int64_t key) {
  const auto row = static_cast<std::uint64_t>(query);
  const auto column = static_cast<std::uint64_t>(key);
  return static_cast<unsigned>(row / ScoreGroups::kHalf % 2 * 2 + column / ScoreGroups::kHalf % 2);
}

/// A number of 16 bits is kept if it is not below the threshold.
inline std::uint32_t score_threshold(double probability) {
  return static_cast<std::uint32_t>(std::lround(probability * 65536.0));
}

/// @param bits  random_bits() of the head's key and the group's index
constexpr bool is_score_kept(std::uint64_t bits, unsigned place, std::uint32_t threshold) {
  return (static_cast<std::uint32_t>(bits >> (16U * place)) & 0xffffU) >= threshold;
}

}  // namespace dstune
