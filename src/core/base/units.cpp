#include "core/base/units.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {

std::string format_bytes(Bytes size) {
  constexpr std::array<const char*, 5> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (size < 1024) return concat(size, " B");
  double value = static_cast<double>(size) / 1024.0;  // 1023.995 would show as 1024.00
  std::size_t unit = 0;
  while (value >= 1023.995 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return concat(fixed(value, 2), " ", kUnits[unit]);
}

namespace {

std::optional<double> unit_factor(std::string unit) {
  for (char& letter : unit)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  static constexpr std::array<std::pair<const char*, double>, 14> kFactors = {{{"", 1},
                                                                               {"b", 1},
                                                                               {"kb", 1e3},
                                                                               {"mb", 1e6},
                                                                               {"gb", 1e9},
                                                                               {"tb", 1e12},
                                                                               {"k", 0x1p10},
                                                                               {"kib", 0x1p10},
                                                                               {"m", 0x1p20},
                                                                               {"mib", 0x1p20},
                                                                               {"g", 0x1p30},
                                                                               {"gib", 0x1p30},
                                                                               {"t", 0x1p40},
                                                                               {"tib", 0x1p40}}};
  for (const auto& [name, factor] : kFactors) {
    if (unit == name) return factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Bytes> parse_bytes(std::string_view text) {
  const std::string_view size_text = trim(text);
  double number = 0;
  const char* const end = size_text.data() + size_text.size();
  const auto [rest, fault] = std::from_chars(size_text.data(), end, number);
  if (fault != std::errc() || std::signbit(number) || !std::isfinite(number)) return std::nullopt;
  const auto factor = unit_factor(std::string(trim({rest, static_cast<std::size_t>(end - rest)})));
  if (!factor) return std::nullopt;
  const double size = std::floor(number * *factor);
  if (!(size >= 0 && size < 0x1p63)) return std::nullopt;
  return static_cast<Bytes>(size);
}

namespace {

/// Takes a time such as "20 min" from the front of `text`.
std::optional<Seconds> take_time(std::string_view& text) {
  static constexpr std::array<std::pair<std::string_view, Seconds>, 4> kUnits = {
      {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  if (fault != std::errc() || std::signbit(number) || !std::isfinite(number)) return std::nullopt;
  text = trim({rest, static_cast<std::size_t>(end - rest)});
  std::string unit;
  while (!text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0) {
    unit += static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
    text.remove_prefix(1);
  }
  text = trim(text);
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name) return number * seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Seconds> parse_seconds(std::string_view text) {
  constexpr Seconds kMost = 86400e6;
  Seconds sum = 0;
  std::string_view rest = trim(text);
  if (rest.empty()) return std::nullopt;
  while (!rest.empty()) {
    const auto part = take_time(rest);
    if (!part) return std::nullopt;
    sum += *part;
  }
  return sum <= kMost ? std::optional(sum) : std::nullopt;
}

std::string format_seconds(Seconds time) {
  // The bounds are where rounding would show 1000 of the smaller unit.
  if (time < 999.5e-6) return concat(fixed(time * 1e6, 0), " us");
  if (time < 0.99995) return concat(fixed(time * 1e3, 1), " ms");
  if (time < 120) return concat(fixed(time, 2), " s");
  const auto whole = static_cast<long long>(std::llround(time));
  return concat(whole / 60, " min ", whole % 60, " s");
}

}  // namespace dstune
