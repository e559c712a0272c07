// The fault of a text that is no JSON, in words for the person who wrote it.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/input/checked_json_handler.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// @param offset  where Boost's parser stopped; it may lie far behind the text
/// @returns the place, "line 3, column 5", and the reason
Problem describe_json_fault(std::string_view text, std::size_t offset,
                            const json::error_code& fault, std::size_t max_depth,
                            CheckedJsonHandler::Place place);

}  // namespace dstune
