// What BERT and its kin are asked in a micro-step: tokens that were masked, or classes.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/operations/mask_tokens.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

/// How the task masks: for a classifier nothing is masked, but tokens that would be padding are
/// replaced alike.
MaskTokens masking_of(const ModelSpec& spec, std::int64_t mask_token,
                      const std::optional<std::int64_t>& pad_token);

/// Masks tokens in place, by the micro-step's seed. What is behind a sequence is asked for nothing:
/// tokens without next ones have no labels.
/// @returns the labels, int64 (M)
Buffer mask_tokens(const layers::Workspace& work, MaskTokens masking, Tensor tokens,
                   std::uint64_t seed);

/// @returns a class for each sequence, int64
Buffer draw_labels(const layers::Workspace& work, std::int64_t num_labels, std::uint64_t seed);

}  // namespace dstune::bert
