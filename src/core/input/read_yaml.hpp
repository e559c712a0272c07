// Reads YAML that people write for their trainers, as the JSON value that it stands for.
#pragma once

#include <optional>
#include <string_view>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"
#include "core/input/read_json.hpp"

namespace dstune {

/// Parses one YAML document. Plain scalars are null, booleans (also yes, no, on, off), integers and
/// numbers where they look so, as PyYAML's safe_load has them (`0x40`, `0b101`, `010` is 8,
/// `1_000`); but `1e-4` is a number, as in YAML 1.2 and for the trainers, which convert it. What is
/// quoted, and any other scalar, is a text; so are dates, times (`1:30`), `.inf` and `.nan`, which
/// PyYAML converts.
///
/// Anchors, aliases and tags are faults: no trainer's file needs them, and a few lines of them can
/// stand for billions of values.
///
/// @returns none, with a problem at "line 3, column 5", if the text is no such YAML, is nested
/// deeper than `limits`, or has more than one document; null for an empty text
std::optional<json::value> parse_config_yaml(std::string_view text, Problems& problems,
                                             const JsonLimits& limits = {});

}  // namespace dstune
