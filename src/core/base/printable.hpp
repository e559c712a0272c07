// Text from outside (file names, keys) that is safe in a terminal, a log and a JSON file.
#pragma once

#include <string>
#include <string_view>

namespace dstune {

/// `text`, in which every control character (line breaks too), every character that turns the
/// direction of reading, and every byte that is not UTF-8 is written as "\x1B". Other text is
/// returned as it is.
std::string printable(std::string_view text);

/// The same, except that line breaks stay.
std::string printable_lines(std::string_view text);

/// The same for a JSON text without line breaks, with escapes as JSON writes them: "\u202E". Bytes
/// that are not UTF-8, which no JSON text has, stay.
std::string printable_json(std::string_view text);

}  // namespace dstune
