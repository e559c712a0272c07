#include "core/base/pattern.hpp"

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

// "a{,3}" is at most three of them in Python, and these very letters in RE2.
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

}  // namespace dstune
