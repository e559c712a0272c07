// Reads text as JSON values, exact for every number: what to_json_text wrote reads back to the same
// bits.
#pragma once

#include <string_view>

#include "core/base/json.hpp"

namespace dstune {

/// Strict JSON (no comments, no trailing commas). Unlike boost::json::parse, whose doubles may be
/// off by a bit in the last place, doubles are the nearest ones to their text.
///
/// @param storage  where the value lives
/// @throws std::invalid_argument  with reason and byte offset, if `text` is not one JSON value
json::value parse_json(std::string_view text, json::storage_ptr storage = {});

}  // namespace dstune
