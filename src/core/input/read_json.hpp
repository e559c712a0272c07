// Reads files that people write: JSON with comments and trailing commas. Every fault has its place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"

namespace dstune {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{1} << 20U;
  std::size_t max_depth = 64;  ///< nested lists and objects
};

/// Parses JSON (RFC 8259, UTF-8, an optional byte order mark) with // and /* */ comments and
/// trailing commas. Doubles are the nearest ones to their text; NaN and infinities are faults.
///
/// Duplicate keys are added to `problems` with `pointer` and their JSON pointer, and the value is
/// still returned.
/// @returns none, with a problem at "line 3, column 5", if the text is no JSON
std::optional<json::value> parse_config_json(std::string_view text, std::string_view pointer,
                                             Problems& problems, const JsonLimits& limits = {});

/// The value of a file, or of standard input (read_text.hpp).
std::optional<json::value> read_json_file(const std::filesystem::path& path,
                                          std::string_view pointer, Problems& problems,
                                          const JsonLimits& limits = {});

}  // namespace dstune
