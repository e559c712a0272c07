// A counter-based RNG: a hash of (key, index), so that any element can be made alone, and in the
// same way by every backend.
#pragma once

#include <cstdint>

namespace dstune {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with good avalanche.
constexpr std::uint64_t split_mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// The key of an RNG stream, which is independent of the keys of other (seed, stream) pairs.
constexpr std::uint64_t make_key(std::uint64_t seed, std::uint64_t stream = 0) {
  return split_mix(split_mix(seed + 0x9e3779b97f4a7c15U) + stream);
}

/// The key whose number at 0 is the number of `key` at `index`, at 1 that at index + 1, and so on.
constexpr std::uint64_t key_from(std::uint64_t key, std::uint64_t index) {
  return key + index * 0x9e3779b97f4a7c15U;
}

constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
  return split_mix(key_from(key, index));
}

/// The threshold for 32-bit numbers r: an element is kept if r >= the threshold.
constexpr std::uint32_t drop_threshold(double probability) {
  return static_cast<std::uint32_t>(probability * 4294967296.0);
}

constexpr bool is_kept(std::uint64_t key, std::uint64_t index, std::uint32_t threshold) {
  return static_cast<std::uint32_t>(random_bits(key, index) >> 32U) >= threshold;
}

}  // namespace dstune
