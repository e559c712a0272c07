// Experts drawn instead of chosen: how much each token wants each expert, on every backend alike.
#pragma once

#include <cstdint>

#include "core/device/random_bits.hpp"

namespace dstune {

/// Tokens go to experts by lot. An expert's popularity is exp(imbalance * n), n of a normal
/// distribution: 0 is even, and the more experts differ the more uneven are their tokens.
struct ExpertDraw {
  std::uint64_t seed = 0;
  double imbalance = 0;
};

/// The logarithm of the popularity of `expert`. The sum of 12 uniform numbers, less 6, stands for a
/// normal one.
constexpr float log_popularity(const ExpertDraw& draw, std::int64_t expert) {
  constexpr int kTerms = 12;
  const std::uint64_t key = make_key(draw.seed, 1);
  double sum = -kTerms / 2.0;
  for (int term = 0; term < kTerms; ++term) {
    const auto index = static_cast<std::uint64_t>(expert * kTerms + term);
    sum += static_cast<double>(random_bits(key, index) >> 32U) * 0x1p-32;
  }
  return static_cast<float>(draw.imbalance * sum);
}

/// The number is above 0 and below 1, and independent for each pair. A token's experts with the
/// largest log_popularity - log(-log(number)) are a draw without replacement (Gumbel-top-k, Kool et
/// al. 2019).
constexpr float drawn_number(const ExpertDraw& draw, std::int64_t pair) {
  const std::uint64_t bits = random_bits(make_key(draw.seed), static_cast<std::uint64_t>(pair));
  return (static_cast<float>(bits >> 41U) + 0.5F) * 0x1p-23F;
}

}  // namespace dstune
