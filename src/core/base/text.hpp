// Small text helpers: concatenation, fixed decimals, splitting, spelling suggestions, hashes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace dstune {

/// The text of all arguments, streamed one after the other.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// `value` with exactly `decimals` decimals, never in exponent form.
std::string fixed(double value, int decimals);

std::string_view trim(std::string_view text);

/// The parts of `text` between `separator`s, empty ones included; {""} for "".
std::vector<std::string> split(std::string_view text, char separator);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// The member of `known` that `word` most likely means, or "" if none is near. A member is near if
/// at most a third of the word's letters (at least one) are inserted, deleted, replaced or swapped
/// with a neighbour. Also "" if `word` is itself a member.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// The number of letters to insert, delete, replace or swap with a neighbour (the optimal string
/// alignment distance: Damerau-Levenshtein without repeated edits of a substring). Letters are
/// bytes.
///
/// @param most  a distance above it is found sooner, but is only known to be above it
std::size_t edit_distance(std::string_view a, std::string_view b,
                          std::size_t most = std::numeric_limits<std::size_t>::max());

constexpr std::uint64_t kHashStart = 0xCBF29CE484222325U;

/// FNV-1a: the same number for the same bytes on every machine and in every run.
constexpr std::uint64_t hash_of(std::string_view bytes, std::uint64_t start = kHashStart) {
  std::uint64_t hash = start;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  }
  return hash;
}

}  // namespace dstune
