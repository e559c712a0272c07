// Where chance has a part in a micro-step of DeBERTa beside the places of BERT.
#pragma once

#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// Of the convolution's dropout.
inline std::uint64_t convolution_seed(std::uint64_t seed) {
  return layers::seed_of(layers::mix(seed), 0);
}
/// Of the table of relative positions in a block.
inline std::uint64_t positions_seed(std::uint64_t seed, std::int64_t block) {
  return layers::seed_of(layers::mix(seed), 1 + static_cast<std::uint64_t>(block));
}

}  // namespace dstune::deberta
