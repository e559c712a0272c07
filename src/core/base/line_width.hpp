// Lines that fit into a terminal: wrapped between words, or cut in their middle.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dstune {

/// Columns of a line that people read: what a terminal, a log viewer or a mail shows whole.
inline constexpr std::size_t kLineWidth = 100;

/// The columns of UTF-8 text: its characters, not its bytes.
std::size_t columns_of(std::string_view text);

/// `text` in at most `width` columns, with "..." where its middle was: the beginning and the end of
/// a name tell more than its middle. No number is cut. Less than four columns cut off the end
/// instead.
std::string cut_in_middle(std::string_view text, std::size_t width);

/// `parts`, none of them cut, as many to a line as fit kLineWidth with `separator` between them; a
/// part may be longer by itself. Lines after the first are indented by two blanks.
std::vector<std::string> in_lines(const std::vector<std::string>& parts,
                                  std::string_view separator);

/// `text` with line breaks in place of blanks, so that no line is wider than `width` but for words
/// that are wider themselves, such as paths, and none between a number and its unit. Breaks that
/// are there stay, as do blanks before the first word.
/// @param indent  before each line that begins by a new break
std::string wrapped(std::string_view text, std::size_t width = kLineWidth,
                    std::string_view indent = "");

}  // namespace dstune
