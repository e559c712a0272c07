#include "core/input/json_fault.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/base/text.hpp"

namespace dstune {

namespace {

std::string too_early() { return "ends too early: a bracket or quote is still open"; }

std::string place_of(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto line_start = before.rfind('\n');
  const auto column = line_start == std::string_view::npos ? offset + 1 : offset - line_start;
  return concat("line ", line, ", column ", column);
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-' ||
         letter == '+' || letter == '.';
}

// The bare word around `offset`, which then becomes the offset of its first letter.
std::string_view word_at(std::string_view text, std::size_t& offset) {
  while (offset > 0 && is_word(text[offset - 1])) --offset;
  std::size_t end = offset;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(offset, end - offset);
}

// True for words such as GBSIZE, __LR__ and MICRO_BATCH_2: nobody writes values like that.
bool is_placeholder(std::string_view word) {
  const auto is_capital = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
  return std::count_if(word.begin(), word.end(), is_capital) > 1 &&
         std::all_of(word.begin(), word.end(), [&](char letter) {
           return is_capital(letter) || letter == '_' || (letter >= '0' && letter <= '9');
         });
}

// True for ${LR}, $LR, <LR>, @LR@ and %LR%, and for {{ LR }}, at whose second bracket the parser
// stops.
bool is_template_mark(std::string_view text, std::size_t& offset) {
  const char letter = text[offset];
  if (letter != '{') return std::string_view("$<@%").find(letter) != std::string_view::npos;
  if (offset == 0 || text[offset - 1] != '{') return false;
  --offset;
  return true;
}

std::string_view piece_at(std::string_view rest) {
  return rest.substr(0, rest.find_first_of(" \t\r\n,]}"));
}

// Brackets that stand behind the mark belong to the JSON around it.
std::string_view template_mark_at(std::string_view rest) {
  for (const std::string_view pair : {"{{}}", "${}"}) {
    const auto open = pair.size() / 2 + pair.size() % 2;
    const auto end = rest.find(pair.substr(open));
    if (rest.starts_with(pair.substr(0, open)) && end != std::string_view::npos) {
      return rest.substr(0, end + pair.size() - open);
    }
  }
  return piece_at(rest);
}

std::string with_placeholder(std::string_view word) {
  return concat("has ", in_quotes(word),
                " where JSON does not allow it; it looks like a placeholder of a template: fill it "
                "in");
}

std::string unexpected_word(std::string_view word) {
  constexpr std::string_view kNumbers[] = {"NaN",  "nan",  "Infinity", "-Infinity",
                                           "-NaN", "-nan", "inf",      "-inf"};
  if (std::find(std::begin(kNumbers), std::end(kNumbers), word) != std::end(kNumbers)) {
    return concat("has ", word, ", which is not JSON; accepted: finite numbers");
  }
  if (word == "True" || word == "False" || word == "None") {
    return concat("has ", word, ", which is Python; JSON writes true, false, null");
  }
  if (is_placeholder(word)) return with_placeholder(word);
  return concat("has ", in_quotes(word), " where JSON does not allow it");
}

// The string, word or bracket at `offset`, as a message shows it; "" if no value begins there.
std::string value_at(std::string_view text, std::size_t& offset) {
  const char letter = text[offset];
  if (is_word(letter)) return in_quotes(word_at(text, offset));
  if (letter == '{' || letter == '[') return in_quotes(text.substr(offset, 1));
  if (letter != '"') return "";
  const auto rest = text.substr(offset + 1);
  return in_quotes(rest.substr(0, rest.find_first_of("\"\n")));
}

// A value where only a comma, a colon or a closing bracket may stand; "" if there is none.
std::string missing_separator(std::string_view text, std::size_t& offset,
                              CheckedJsonHandler::Place place) {
  using Place = CheckedJsonHandler::Place;
  if (place == Place::elsewhere) return "";
  const std::string value = value_at(text, offset);
  const auto before = trim(text.substr(0, offset));
  const char last = before.empty() ? '[' : before.back();
  if (value.empty() || std::string_view(",:[{").find(last) != std::string_view::npos) return "";
  return concat(place == Place::after_key ? "a colon" : "a comma", " is missing before ", value);
}

struct Scan {
  static constexpr std::size_t kNone = std::string_view::npos;
  std::size_t string = kNone;  ///< offset where the string that is still open begins
  std::size_t slash = kNone;   ///< offset of a slash that begins no comment
};

// Scans the text before `end`.
Scan scan(std::string_view text, std::size_t end) {
  Scan found;
  for (std::size_t i = 0; i < end && found.slash == Scan::kNone; ++i) {
    const char letter = text[i];
    const bool inside = found.string != Scan::kNone;
    if (inside && letter == '\\') {
      ++i;
    } else if (letter == '"') {
      found.string = inside ? Scan::kNone : i;
    } else if (!inside && letter == '/') {
      const char next = i + 1 < text.size() ? text[i + 1] : ' ';
      if (next != '/' && next != '*') found.slash = i;
      const std::string_view close = next == '/' ? "\n" : "*/";
      i = std::min(text.find(close, i + 2), text.size()) + close.size() - 1;
    }
  }
  return found;
}

// The fault of a character that must not stand in a string. Boost stops at the character itself, or
// at the one behind a backslash.
std::string wrong_in_string(std::string_view text, std::size_t& offset, std::size_t begin) {
  const auto code = static_cast<unsigned char>(text[offset]);
  if (text[offset - 1] == '\\' && code > 0x20U && code < 0x7FU) {
    --offset;
    return concat("has ", in_quotes(text.substr(offset, 2)),
                  " in a string; a backslash is written \\\\");
  }
  if (code == '\n' || code == '\r') {
    const auto line = text.substr(begin + 1, offset - begin - 1);
    offset = begin;
    return concat("has a string that is not closed on its line: a quote is missing after ",
                  in_quotes(line));
  }
  if (code < 0x20U) return "has a control character in a string; a tab is written \\t";
  if (code < 0x80U) return "has half of a surrogate pair in a string";
  return "has bytes that are not UTF-8";
}

std::string unexpected(std::string_view text, std::size_t& offset,
                       CheckedJsonHandler::Place place) {
  const Scan before = scan(text, offset);
  if (before.slash != Scan::kNone) {
    offset = before.slash;
    return concat("has ", in_quotes(piece_at(text.substr(offset))),
                  " where JSON does not allow it; strings are written in double quotes");
  }
  if (offset >= text.size()) return too_early();
  if (before.string != Scan::kNone) return wrong_in_string(text, offset, before.string);
  std::string missing = missing_separator(text, offset, place);
  if (!missing.empty()) return missing;
  const char letter = text[offset];
  if (static_cast<unsigned char>(letter) >= 0x80U) {
    return "has a character outside a string";
  }
  if (is_word(letter)) return unexpected_word(word_at(text, offset));
  if (letter == '\'') return "has a single quote; JSON strings are written in double quotes";
  if (letter == '\0') return "has a zero byte: this is not a text file";
  if (is_template_mark(text, offset)) {
    return with_placeholder(template_mark_at(text.substr(offset)));
  }
  return concat("has ", in_quotes(text.substr(offset, 1)), " where JSON does not allow it");
}

std::string syntax_fault(std::string_view text, std::size_t& offset, const json::error_code& fault,
                         std::size_t max_depth, CheckedJsonHandler::Place place) {
  if (fault == json::error::too_deep) {
    return concat("is nested deeper than ", max_depth, " levels");
  }
  if (fault == json::error::extra_data) return "has more text after the end of the JSON value";
  if (fault == json::error::incomplete) {
    offset = text.size();
    return too_early();
  }
  if (fault == json::error::syntax) return unexpected(text, offset, place);
  return concat("is not JSON: ", fault.message());
}

}  // namespace

Problem describe_json_fault(std::string_view text, std::size_t offset,
                            const json::error_code& fault, std::size_t max_depth,
                            CheckedJsonHandler::Place place) {
  offset = std::min(offset, text.size());  // Boost's is anywhere behind a slash of no comment
  std::string what = syntax_fault(text, offset, fault, max_depth, place);
  return {place_of(text, offset), std::move(what)};
}

}  // namespace dstune
