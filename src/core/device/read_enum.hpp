// Reads enumerators by their names in JSON.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

constexpr std::size_t kSentDTypes = 6;  ///< int64 comes after them: it is never sent

/// The enumerator that `object[key]` names, one of the first `count`.
/// @param where  what is read, for the message
/// @throws std::invalid_argument  if it names none
template <class Enum>
Enum read_enum(const json::object& object, std::string_view key, std::size_t count,
               std::string_view where) {
  const std::string_view text = object.at(key).as_string();
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  throw std::invalid_argument(concat(where, ": unknown ", key, " \"", text, "\""));
}

}  // namespace dstune
