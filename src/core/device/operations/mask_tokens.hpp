// The questions that a masked language model is asked (Devlin et al. 2018).
#pragma once

#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// For tokens that the seed chooses with `probability`, labels[i] = tokens[i], and inputs[i] is
/// mask_token in 8 of 10 cases, any token in 1, tokens[i] in 1. Elsewhere labels[i] = -1 and
/// inputs[i] = tokens[i]. This is transformers' DataCollatorForLanguageModeling, but that nothing
/// is padded: where pad_token would be drawn, in tokens or in its place, the next one is.
///
/// core/device/token_masking.hpp has the rule, the same for every backend: element i depends on
/// (seed, i) and tokens[i] alone.
struct MaskTokens {
  Tensor tokens{};            ///< int64
  double probability = 0.15;  ///< < 1
  std::int64_t mask_token = 0;
  std::int64_t pad_token = -1;  ///< -1: there is none
  std::int64_t vocab_size = 1;
  std::uint64_t seed = 0;
  Tensor inputs{};  ///< int64, as many; may be `tokens`
  Tensor labels{};  ///< int64, as many
};

inline Work work_of(const MaskTokens& op) {
  return {"mask_tokens", 0, {op.tokens}, {op.inputs, op.labels}};
}

}  // namespace dstune
