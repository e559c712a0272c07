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

/// Synthetic tokens: uniform in [0, vocab), from the seed alone.
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
