// Random numbers that depend on a seed and an index alone, dropout, and the tokens to mask.
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/random_bits.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Normal numbers with mean 0. Element i depends on (seed, first_index + i) alone, so that a shard
/// can be filled as the whole tensor would be.
struct FillNormal {
  Tensor out;
  double stddev = 1;
  std::uint64_t seed = 0;
  std::int64_t first_index = 0;
};

/// Synthetic tokens in [0, vocab), as frequent as in text: by Zipf's law most of them are the first
/// few. Element i depends on (seed, i) alone.
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

/// out = in * mask / (1 - probability); the mask is kept.
struct Dropout {
  Tensor in;
  double probability = 0;  ///< < 1
  std::uint64_t seed = 0;  ///< the mask depends only on it and on the index
  Tensor mask;             ///< written: int8, 1 per element that is kept, else 0
  Tensor out;
};

/// d_in = d_out * mask / (1 - probability)
struct DropoutBackward {
  Tensor d_out;
  double probability = 0;
  Tensor mask;
  Tensor d_in;  ///< may be d_out
};

inline Work work_of(const Dropout& op) {
  return {"dropout", 2 * count(op.in), {op.in}, {op.mask, op.out}};
}
inline Work work_of(const DropoutBackward& op) {
  return {"dropout_backward", 2 * count(op.d_out), {op.d_out, op.mask}, {op.d_in}};
}

/// The rule of MaskTokens. The bits 2 i of the key decide over element i, and the bits 2 i + 1 are
/// the token that may take its place.
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

/// The task of a masked language model (Devlin et al. 2018). For tokens that the seed chooses with
/// `probability`, labels[i] = tokens[i], and inputs[i] is mask_token in 8 of 10 cases, any token in
/// 1 case, and tokens[i] in 1 case. Elsewhere labels[i] = -1 and inputs[i] = tokens[i]. This is
/// transformers' DataCollatorForLanguageModeling, except that nothing is padding: where pad_token
/// would be drawn, among tokens or in the place of one, the next token is taken.
///
/// TokenMasking has the rule, which is the same for every backend: element i depends on (seed, i)
/// and tokens[i] alone.
struct MaskTokens {
  Tensor tokens{};            ///< int64
  double probability = 0.15;  ///< < 1
  std::int64_t mask_token = 0;
  std::int64_t pad_token = -1;  ///< -1: there is none
  std::int64_t vocab_size = 1;
  std::uint64_t seed = 0;
  Tensor inputs{};  ///< int64, as many as tokens; may be `tokens`
  Tensor labels{};  ///< int64, as many as tokens
};

inline Work work_of(const MaskTokens& op) {
  return {"mask_tokens", 0, {op.tokens}, {op.inputs, op.labels}};
}

}  // namespace dstune
