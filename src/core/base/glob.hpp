// Shell patterns.
#pragma once

#include <string_view>

namespace dstune {

/// True if `pattern` stands for all of `text`, as in POSIX' fnmatch() without flags: * is any text,
/// ? any character, [abc], [a-c] and [!abc] one of some; all else is itself.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace dstune
