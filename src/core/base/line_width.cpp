#include "core/base/line_width.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {
namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

/// The bytes of the first `count` characters.
std::size_t bytes_of_first(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && count > 0) {
    ++at;
    while (at < text.size() && !begins_character(text[at])) ++at;
    --count;
  }
  return at;
}

bool is_of_number(char letter) { return (letter >= '0' && letter <= '9') || letter == '.'; }

// Whether a cut before `position` would leave a wrong number.
bool cuts_number(std::string_view text, std::size_t position) {
  return position > 0 && position < text.size() && is_of_number(text[position - 1]) &&
         is_of_number(text[position]);
}

bool ends_in_digit(std::string_view word) {
  return !word.empty() && word.back() >= '0' && word.back() <= '9';
}

bool is_unit(std::string_view word) {
  constexpr std::string_view kUnits[] = {"%", "B",    "KiB",     "MiB",     "GiB",      "TiB",
                                         "s", "ms",   "us",      "min",     "h",        "k",
                                         "M", "GB/s", "GFLOP/s", "TFLOP/s", "samples/s"};
  while (!word.empty() && std::string_view(".,;:)").find(word.back()) != std::string_view::npos)
    word.remove_suffix(1);
  return std::ranges::find(kUnits, word) != std::end(kUnits);
}

/// What no line may be broken in: words, and numbers with their units.
std::vector<std::string> unbroken(const std::string& line) {
  std::vector<std::string> parts;
  for (std::string& word : split(line, ' ')) {
    if (!parts.empty() && ends_in_digit(parts.back()) && is_unit(word)) {
      parts.back().append(" ").append(word);
    } else {
      parts.push_back(std::move(word));
    }
  }
  return parts;
}

std::string wrapped_line(const std::string& line, std::size_t width, std::string_view indent) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::string text = line.substr(0, begin);
  std::size_t used = begin;
  bool is_first = true;
  for (const std::string& word : unbroken(line.substr(begin))) {
    const std::size_t length = columns_of(word);
    if (!is_first && used + 1 + length > width) {
      text.append("\n").append(indent);
      used = columns_of(indent);
    } else if (!is_first) {
      text += ' ';
      ++used;
    }
    text += word;
    used += length;
    is_first = false;
  }
  return text;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut_in_middle(std::string_view text, std::size_t width) {
  constexpr std::string_view kGap = "...";
  const std::size_t columns = columns_of(text);
  if (columns <= width) return std::string(text);
  if (width <= kGap.size()) return std::string(text.substr(0, bytes_of_first(text, width)));
  const std::size_t kept = width - kGap.size();
  const std::size_t first = (kept + 1) / 2;
  std::size_t head = bytes_of_first(text, first);
  std::size_t tail = bytes_of_first(text, columns - (kept - first));
  while (cuts_number(text, head)) --head;
  while (cuts_number(text, tail)) ++tail;
  return concat(text.substr(0, head), kGap, text.substr(tail));
}

std::vector<std::string> in_lines(const std::vector<std::string>& parts,
                                  std::string_view separator) {
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    if (lines.empty()) {
      lines.push_back(part);
    } else if (columns_of(lines.back()) + columns_of(separator) + columns_of(part) <= kLineWidth) {
      lines.back().append(separator).append(part);
    } else {
      lines.push_back(concat("  ", part));
    }
  }
  return lines;
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) line = wrapped_line(line, width, indent);
  return join(lines, "\n");
}

}  // namespace dstune
