// How a model's attention is computed: transformers' attn_implementation.
#pragma once

#include <optional>
#include <string_view>

namespace dstune {

enum class AttentionKind {
  sdpa,              ///< torch's scaled_dot_product_attention, without the scores
  eager,             ///< full matrices of scores
  eager_torch_1_10,  ///< eager up to PyTorch 1.10, whose softmax keeps its input, too
  flash,             ///< the flash_attn package: as sdpa
};

constexpr std::string_view name_of(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::sdpa:
      return "sdpa";
    case AttentionKind::eager:
      return "eager";
    case AttentionKind::eager_torch_1_10:
      return "eager_torch1.10";
    case AttentionKind::flash:
      break;
  }
  return "flash";
}

/// The kind that `name` is the name of, if there is one.
constexpr std::optional<AttentionKind> attention_kind_from(std::string_view name) {
  for (const AttentionKind kind : {AttentionKind::sdpa, AttentionKind::eager,
                                   AttentionKind::eager_torch_1_10, AttentionKind::flash}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace dstune
