#include "core/base/one_line.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr std::string_view kGap = "...";
constexpr std::size_t kLeast = 8;

bool is_of_number(char letter) { return (letter >= '0' && letter <= '9') || letter == '.'; }

bool is_inside_character(char letter) {
  return (static_cast<unsigned char>(letter) & 0xC0U) == 0x80U;
}

// Whether a cut before `position` would leave a wrong number or half of a character.
bool cuts(std::string_view text, std::size_t position) {
  if (position == 0 || position >= text.size()) return false;
  return is_inside_character(text[position]) ||
         (is_of_number(text[position - 1]) && is_of_number(text[position]));
}

}  // namespace

std::string elided(std::string_view text, std::size_t most) {
  most = std::max(most, kLeast);
  if (text.size() <= most) return std::string(text);
  const std::size_t kept = most - kGap.size();
  std::size_t head = (kept + 1) / 2;
  std::size_t tail = text.size() - kept / 2;
  while (cuts(text, head)) --head;
  while (cuts(text, tail)) ++tail;
  return concat(text.substr(0, head), kGap, text.substr(tail));
}

std::vector<std::string> in_lines(const std::vector<std::string>& parts,
                                  std::string_view separator) {
  std::vector<std::string> lines;
  for (const std::string& part : parts) {
    if (lines.empty()) {
      lines.push_back(part);
    } else if (lines.back().size() + separator.size() + part.size() <= kLogColumns) {
      lines.back().append(separator).append(part);
    } else {
      lines.push_back(concat("  ", part));
    }
  }
  return lines;
}

}  // namespace dstune
