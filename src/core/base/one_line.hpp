// Lines of the log that fit the width of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dstune {

/// The most columns of a line that a run logs again and again.
inline constexpr std::size_t kLogColumns = 100;

/// `text` in at most `most` bytes: where it is longer, "..." stands for what is left out of its
/// middle. No number and no character of UTF-8 is cut. Below 8 bytes nothing useful is left, so
/// that `most` counts as 8.
std::string elided(std::string_view text, std::size_t most);

/// `parts`, none of them cut, as many to a line as fit kLogColumns with `separator` between them; a
/// part may be longer by itself. Lines after the first are indented by two blanks.
std::vector<std::string> in_lines(const std::vector<std::string>& parts,
                                  std::string_view separator);

}  // namespace dstune
