// Which tokens a masked language model must find, and what stands in their place: the same integers
// in every backend.
#pragma once

#include <cstdint>

#include "core/device/random_bits.hpp"

namespace dstune {

/// The rule of MaskTokens. Bits 2 i of the key decide over element i, bits 2 i + 1 are the token
/// that may take its place.
struct TokenMasking {
  struct Masked {
    std::int64_t input;
    std::int64_t label;
  };

  std::uint64_t key;     ///< make_key(seed)
  std::uint32_t chosen;  ///< drop_threshold(probability)
  std::int64_t mask_token;
  std::int64_t pad_token;
  std::int64_t vocab_size;  ///< <= 2^32

  constexpr Masked at(std::int64_t i, std::int64_t drawn) const {
    constexpr std::uint32_t kMask = drop_threshold(0.8);
    constexpr std::uint32_t kAny = drop_threshold(0.9);
    const std::int64_t token = without_padding(drawn);
    const auto place = 2 * static_cast<std::uint64_t>(i);
    const std::uint64_t bits = random_bits(key, place);
    if (static_cast<std::uint32_t>(bits >> 32U) >= chosen) return {token, -1};
    const auto kind = static_cast<std::uint32_t>(bits);
    if (kind < kMask) return {mask_token, token};
    if (kind >= kAny) return {token, token};
    const std::uint64_t part = random_bits(key, place + 1) >> 32U;
    const std::uint64_t any = part * static_cast<std::uint64_t>(vocab_size) >> 32U;
    return {without_padding(static_cast<std::int64_t>(any)), token};
  }

 private:
  constexpr std::int64_t without_padding(std::int64_t token) const {
    return token == pad_token ? (token + 1) % vocab_size : token;
  }
};

}  // namespace dstune
