// Patterns of texts: regular expressions from users, and shell patterns.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace dstune {

/// A regular expression that matches whole texts, as Python's re.fullmatch() does. Compiling takes
/// bounded memory, and matching takes time that is linear in the text, whatever the expression is.
///
/// The syntax is RE2's. Python's has more, namely look-around, backreferences, conditions, atomic
/// groups and (?x), which are refused; \d, \w and \s are those of ASCII.
class Pattern {
 public:
  /// @throws std::invalid_argument  if `text` is no such expression, or means something else in
  /// Python; the message has the reason ("invalid perl operator: (?=")
  explicit Pattern(const std::string& text);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  bool matches(std::string_view text) const;

 private:
  std::unique_ptr<re2::RE2> expression_;
};

/// True if `pattern` matches all of `text`, as in POSIX' fnmatch() without flags: * is any text, ?
/// any character, [abc], [a-c] and [!abc] one of a class; every other character is itself.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace dstune
