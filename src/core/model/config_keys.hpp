// Keys of a Hugging Face config.json: those that no family reads, and the values of others.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// The limits of dimensions keep every product of them, and so the number of parameters, within 64
/// bits.
inline constexpr std::int64_t kMostTokens = 100'000'000;  ///< of a vocabulary, or a sequence
inline constexpr std::int64_t kWidest = 1'000'000;
inline constexpr std::int64_t kMostHeadColumns = 10'000'000;  ///< of all heads together
inline constexpr std::int64_t kDeepest = 1000;                ///< a plan walks every layer

/// A misspelt dimension would otherwise be Hugging Face's default in silence: one warning for each
/// key that is neither read by `section`, nor in `no_op_keys`, nor one of PretrainedConfig's
/// that do not change a training step.
/// @param family  as people write it: "GPT-2"
void warn_of_unknown_keys(const json::object& config, const Section& section,
                          std::span<const std::string_view> no_op_keys, std::string_view family,
                          std::string_view pointer, std::vector<std::string>& warnings);

/// `member` becomes the value of `key`; it stays where that is absent or null.
/// @param object  as check_section() has left it: the value has the member's type
template <class Member>
void take_value(const json::object& object, const char* key, Member& member) {
  const auto* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return;
  if constexpr (std::is_same_v<Member, bool>) {
    member = value->as_bool();
  } else if constexpr (std::is_same_v<Member, std::string>) {
    member = value->as_string().c_str();
  } else {
    member = value->to_number<Member>();
  }
}

}  // namespace dstune
