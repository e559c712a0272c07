#include "core/base/pattern.hpp"

#include <cstddef>
#include <stdexcept>

#include <re2/re2.h>

namespace dstune {

namespace {

re2::RE2::Options quiet() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// "a{,3}" means at most three of them in Python, and these very letters in RE2.
bool has_open_repetition(std::string_view text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{' && text[i + 1] == ',' && is_digit(text[i + 2])) {
      return true;
    }
  }
  return false;
}

}  // namespace

Pattern::Pattern(const std::string& text) : expression_(std::make_unique<re2::RE2>(text, quiet())) {
  if (!expression_->ok()) throw std::invalid_argument(expression_->error());
  if (has_open_repetition(text)) throw std::invalid_argument("write {0,n} for {,n}");
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *expression_);
}

namespace {

constexpr std::size_t kNone = std::string_view::npos;

/// A class "[...]" at the start of `pattern`: its size (kNone: it has no end, and the bracket is a
/// character like any other), and whether it contains `c`.
struct Class {
  std::size_t size = kNone;
  bool has = false;
};

Class read_class(std::string_view pattern, char c) {
  std::size_t i = 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  bool has = false;
  for (const std::size_t first = i; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > first) return {i + 1, has != negated};
    char last = pattern[i];
    const char begin = last;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      i += 2;
      last = pattern[i];
    }
    has = has || (begin <= c && c <= last);
  }
  return {};
}

/// The number of characters of `pattern` that match `c`; 0: they do not.
std::size_t matched(std::string_view pattern, char c) {
  if (pattern.empty()) return 0;
  if (pattern.front() == '[') {
    const Class one = read_class(pattern, c);
    if (one.size != kNone) return one.has ? one.size : 0;
  }
  return pattern.front() == '?' || pattern.front() == c ? 1 : 0;
}

}  // namespace

// The search goes back only to the last star: what an earlier star could take in addition, the last
// one can take as well.
bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t star = kNone;
  std::size_t resume = 0;
  for (std::size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (const std::size_t size = matched(pattern.substr(p), text[t]); size > 0) {
      p += size;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace dstune
