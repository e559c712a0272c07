// How the trainer makes the loss of a causal language model, which decides the memory at its peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dstune {

enum class LossKind {
  plain,    ///< transformers: all logits, their fp32 copy and log-softmax
  chunked,  ///< TRL 1.7 to 1.14: 256 tokens at a time, made again in backward
  tiled,    ///< TRL since 1.15: tiles of 4096 tokens and 32768 words, made again in backward
  fused,    ///< Liger's fused linear cross-entropy: gradients are made in forward, chunk by chunk
};

struct LossSettings {
  LossKind kind = LossKind::plain;
  /// A training loop that holds the model's output keeps its logits until the next forward is over.
  /// Only the kind plain has them.
  bool keep_logits = false;

  bool operator==(const LossSettings&) const = default;
};

/// The name in "dstune.loss" and in the text form of an experiment.
std::string_view name_of(LossKind kind);
std::optional<LossKind> loss_from(std::string_view name);

/// "plain", "plain, logits kept"
std::string describe(const LossSettings& settings);

}  // namespace dstune
