// Small text helpers: concatenation, fixed decimals, splitting, spelling suggestions.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace dstune {

/// All arguments streamed one after the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// `value` with exactly `decimals` decimals, never in exponent form.
std::string fixed(double value, int decimals);

std::string_view trim(std::string_view text);

/// Parts between `separator`s, empty ones included; {""} for "".
std::vector<std::string> split(std::string_view text, char separator);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// The member of `known` that `word` most likely means, or "" if none is near: at most a third of
/// its letters (at least one) inserted, deleted, replaced or swapped with a neighbour. "" too if
/// `word` is itself a member.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace dstune
