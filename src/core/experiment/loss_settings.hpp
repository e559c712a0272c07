// How the trainer computes the loss of a causal language model, which decides the memory at the
// peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dstune {

enum class LossKind {
  plain,    ///< transformers: all logits, their fp32 copy and their log-softmax are in memory
  chunked,  ///< TRL 1.7 to 1.14: the logits of 256 tokens at a time, recomputed in backward
  tiled,    ///< TRL since 1.15: tiles of 4096 tokens and 32768 words, recomputed in backward
  /// Liger's fused linear cross-entropy: forward computes the gradients too, chunk by chunk.
  fused,
};

struct LossSettings {
  LossKind kind = LossKind::plain;
  /// A training loop that holds the model's output keeps its logits until the next forward is over.
  /// Only LossKind::plain has such logits.
  bool keep_logits = false;

  bool operator==(const LossSettings&) const = default;
};

/// The name in "dstune.loss" and in the text form of an experiment.
std::string_view name_of(LossKind kind);
std::optional<LossKind> loss_from(std::string_view name);

/// The settings for people: "plain", "plain, logits kept".
std::string describe(const LossSettings& settings);

}  // namespace dstune
