// Where chance has a part in a micro-step of BERT, each place with a seed of its own.
#pragma once

#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

enum class Chance : std::uint64_t {
  batch,  ///< masks, or labels
  embedding,
  classifier_input,
  classifier,
  of_blocks  ///< from here on three per block
};

/// What drops out in one block.
enum class Dropped : std::uint64_t { attention, out, mlp };

inline std::uint64_t seed_at(std::uint64_t seed, Chance place) {
  return layers::seed_of(seed, static_cast<std::uint64_t>(place));
}

inline std::uint64_t seed_at(std::uint64_t seed, std::int64_t block, Dropped place) {
  return layers::seed_of(seed, static_cast<std::uint64_t>(Chance::of_blocks) +
                                   3 * static_cast<std::uint64_t>(block) +
                                   static_cast<std::uint64_t>(place));
}

}  // namespace dstune::bert
