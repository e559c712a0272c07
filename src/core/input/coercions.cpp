#include "core/input/coercions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/text.hpp"

namespace dstune {

namespace {

std::optional<bool> boolean_of(const json::value& value) {
  if (value.is_number()) {
    const auto number = value.to_number<double>();
    if (number == 0 || number == 1) return number == 1;
    return std::nullopt;
  }
  if (!value.is_string()) return std::nullopt;
  constexpr std::array<std::string_view, 6> kTrue = {"true", "t", "yes", "y", "on", "1"};
  constexpr std::array<std::string_view, 6> kFalse = {"false", "f", "no", "n", "off", "0"};
  const std::string word = lower(value.get_string());
  if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) return false;
  return std::nullopt;
}

// A number as Python reads it: blanks around it, a sign, and single underscores between two digits.
std::optional<std::string> plain_number(std::string_view text) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  text = trim(text);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return plain.empty() || plain.front() == '+' ? std::nullopt : std::optional(plain);
}

template <class Number>
std::optional<Number> whole_text_as(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> integer_of(const json::string& value, bool zeros_may_follow) {
  const auto plain = plain_number(value);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const auto point = digits.find('.');
  if (zeros_may_follow && point != std::string_view::npos && point > 0 &&
      digits.find_first_not_of('0', point + 1) == std::string_view::npos) {
    digits = digits.substr(0, point);
  }
  return whole_text_as<std::int64_t>(digits);
}

std::optional<double> number_of(const json::string& value) {
  const auto plain = plain_number(value);
  const auto number = plain ? whole_text_as<double>(*plain) : std::nullopt;
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace

json::value coerced(const json::value& value, const KeyRule& rule) {
  if (rule.kind == ValueKind::boolean) {
    const auto truth = boolean_of(value);
    return truth ? json::value(*truth) : value;
  }
  if (rule.kind == ValueKind::list && rule.or_one && value.is_string()) return json::array{value};
  const bool is_integer = rule.kind == ValueKind::integer;
  if (!is_integer && rule.kind != ValueKind::number) return value;
  if (value.is_bool() && !rule.no_boolean) {
    return is_integer ? json::value(value.get_bool() ? 1 : 0)
                      : json::value(value.get_bool() ? 1.0 : 0.0);
  }
  if (!value.is_string()) return value;
  if (is_integer) {
    const auto number = integer_of(value.get_string(), !rule.no_boolean);
    return number ? json::value(*number) : value;
  }
  const auto number = number_of(value.get_string());
  return number ? json::value(*number) : value;
}

}  // namespace dstune
