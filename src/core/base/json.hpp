// Writes JSON values as text: stable, readable, and exact for every number.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>

namespace dstune {

namespace json = boost::json;

/// Text of `value`, keys in their order. Doubles are the shortest text that reads back to the same
/// bits ("0.0003", "1e-08"; an integral one keeps a ".0"); NaN and infinities, which JSON lacks,
/// are null.
///
/// @param indent  blanks per level, 0 for one line without blanks
std::string to_json_text(const json::value& value, int indent);

/// `value` with the members of every object sorted by key, so that equal content gives equal text.
json::value sorted_by_key(const json::value& value);

/// `object` in the program's own memory, wherever it lived: copies share the memory of what they
/// copy.
inline json::object own_copy(json::object object) {
  return {std::move(object), json::storage_ptr()};
}

/// to_json_text(sorted_by_key(object), 0).
std::string sorted_json_text(const json::object& object);

/// The text of a member.
/// @throws std::exception  if there is none, or it is no text
std::string text_at(const json::object& object, std::string_view key);

}  // namespace dstune
