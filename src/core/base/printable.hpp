// Text from outside (file names, keys) that is safe in a terminal, a log and a JSON file.
#pragma once

#include <string>
#include <string_view>

namespace dstune {

/// `text` with every control character (line breaks too) and every byte that is not UTF-8 as
/// "\x1B". Other text is given back as it is.
std::string printable(std::string_view text);

/// The same, except that line breaks stay.
std::string printable_lines(std::string_view text);

}  // namespace dstune
