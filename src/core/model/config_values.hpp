// Values of a config.json whose keys have been checked.
#pragma once

#include <string>
#include <type_traits>

#include "core/base/json.hpp"

namespace dstune {

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
