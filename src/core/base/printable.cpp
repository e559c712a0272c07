#include "core/base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace dstune {

namespace {

unsigned code(char letter) { return static_cast<unsigned char>(letter); }

/// UTF-8 sequences of one length (RFC 3629).
struct Form {
  unsigned mask;         ///< selects bits of the first byte
  unsigned mark;         ///< the value of those bits
  std::size_t length;    ///< in bytes
  unsigned least_value;  ///< smaller values have shorter sequences
};

constexpr std::array<Form, 4> kForms = {{{0x80U, 0x00U, 1, 0},
                                         {0xE0U, 0xC0U, 2, 0x80U},
                                         {0xF0U, 0xE0U, 3, 0x800U},
                                         {0xF8U, 0xF0U, 4, 0x10000U}}};

// True for a character that turns the direction of reading, which makes a line look like another
// one, or that breaks the line.
bool misleads(unsigned value) {
  return value == 0x061CU || value == 0x200EU || value == 0x200FU ||
         (value >= 0x2028U && value <= 0x202EU) || (value >= 0x2066U && value <= 0x2069U);
}

bool is_shown(unsigned value) {
  const bool is_control = value < 0x20U || (value >= 0x7FU && value < 0xA0U);
  return !is_control && !misleads(value);
}

struct Character {
  std::size_t length = 0;  ///< in bytes; 0: the text does not begin with a valid character
  unsigned value = 0;
};

/// The character that `text` begins with.
Character first_character(std::string_view text) {
  const auto* const form = std::find_if(kForms.begin(), kForms.end(), [&](const Form& candidate) {
    return (code(text.front()) & candidate.mask) == candidate.mark;
  });
  if (form == kForms.end() || form->length > text.size()) return {};
  unsigned value = code(text.front()) & ~form->mask & 0xFFU;
  for (std::size_t i = 1; i < form->length; ++i) {
    if ((code(text[i]) & 0xC0U) != 0x80U) return {};
    value = (value << 6U) | (code(text[i]) & 0x3FU);
  }
  const bool is_surrogate = value >= 0xD800U && value < 0xE000U;
  if (value < form->least_value || is_surrogate || value > 0x10FFFFU) return {};
  return {form->length, value};
}

constexpr const char* kDigits = "0123456789ABCDEF";

std::string escaped(char letter) {
  return {'\\', 'x', kDigits[code(letter) >> 4U], kDigits[code(letter) & 0xFU]};
}

std::string escape(std::string_view text, bool keeps_lines) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const bool is_kept = keeps_lines && text.front() == '\n';
    const Character character = first_character(text);
    const std::size_t length = is_kept || is_shown(character.value) ? character.length : 0;
    shown += length > 0 ? std::string(text.substr(0, length)) : escaped(text.front());
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return escape(text, false); }

std::string printable_lines(std::string_view text) { return escape(text, true); }

std::string printable_json(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto [length, value] = first_character(text);
    if (length == 0 || is_shown(value)) {
      shown += text.substr(0, std::max<std::size_t>(length, 1));
    } else {
      shown += "\\u";
      for (unsigned shift = 16; shift > 0; shift -= 4)
        shown += kDigits[(value >> (shift - 4)) & 0xFU];
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

}  // namespace dstune
