// Keys of a Hugging Face config.json that no family reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// A misspelt dimension would otherwise be Hugging Face's default in silence: one warning for each
/// key that is neither read by `section`, nor in `without_effect`, nor one of PretrainedConfig's
/// that do not change a training step.
/// @param family  as people write it: "GPT-2"
void warn_of_unknown_keys(const json::object& config, const Section& section,
                          std::span<const std::string_view> without_effect, std::string_view family,
                          std::string_view pointer, std::vector<std::string>& warnings);

}  // namespace dstune
