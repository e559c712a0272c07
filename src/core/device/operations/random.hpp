// Random numbers that depend on a seed and an index alone.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Normal numbers, mean 0; element i depends on (seed, first_index + i) alone, so a shard can be
/// filled as the whole tensor would be.
struct FillNormal {
  Tensor out;
  double stddev = 1;
  std::uint64_t seed = 0;
  std::int64_t first_index = 0;
};

/// Synthetic tokens in [0, vocab), as often as in text: Zipf's law, most of them the first few.
/// Element i depends on (seed, i) alone.
///
/// token = min(floor(exp(u * ln(vocab + 1))) - 1, vocab - 1), all in double, where
/// u = (bits >> 11) * 2^-53 is in [0, 1) and bits are the 64 random bits of (seed, i). So
/// P(token = k) = ln((k + 2) / (k + 1)) / ln(vocab + 1). The minimum is for an exp() that rounds
/// up; backends whose exp() differs in the last bit may differ in a token at such a border.
struct FillTokens {
  Tensor out;  ///< int64
  std::int64_t vocab = 0;
  std::uint64_t seed = 0;
};

// Philox and Box-Muller cost about ten operations per number.
inline Work work_of(const FillNormal& op) {
  return {"fill_normal", 10 * count(op.out), {}, {op.out}};
}
inline Work work_of(const FillTokens& op) { return {"fill_tokens", 0, {}, {op.out}}; }

}  // namespace dstune
