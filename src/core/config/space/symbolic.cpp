#include "core/config/space/symbolic.hpp"

#include <charconv>
#include <cmath>

#include "core/base/text.hpp"
#include "core/config/deepspeed/auto_values.hpp"
#include "core/config/space/axis.hpp"

namespace dstune {
namespace {

std::optional<double> factor_of(std::string_view text, std::int64_t hidden_size) {
  if (text == "h") return static_cast<double>(hidden_size);
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = fault == std::errc() && end == text.data() + text.size();
  return is_whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

json::value resolved_auto(std::string_view pointer, std::int64_t hidden_size) {
  const auto keys = keys_of(pointer);
  json::object object;
  set_at(object, keys, "auto");
  json::value result = resolve_auto(object, hidden_size);
  return *find_at(result, keys);
}

}  // namespace

std::optional<double> evaluate(std::string_view text, std::int64_t hidden_size) {
  double product = 1;
  for (const std::string& part : split(text, '*')) {
    const auto factor = factor_of(trim(part), hidden_size);
    if (!factor) return std::nullopt;
    product *= *factor;
  }
  return product;
}

std::optional<std::int64_t> truncated(double number) {
  constexpr double kRounding = 1e-12;
  if (!(std::abs(number) <= 0x1p53)) return std::nullopt;
  const double nearest = std::round(number);
  const bool is_rounding = std::abs(number - nearest) <= kRounding * std::abs(number);
  return static_cast<std::int64_t>(is_rounding ? nearest : std::trunc(number));
}

json::value resolved(const json::value& value, std::string_view pointer, const KeyRule* rule,
                     std::int64_t hidden_size) {
  if (is_auto(value)) return resolved_auto(pointer, hidden_size);
  if (!value.is_string() || rule == nullptr) return value;
  const std::string_view text(value.get_string());
  const bool is_integer = rule->kind == ValueKind::integer;
  if (text.find('h') == std::string_view::npos) return value;
  if (!is_integer && rule->kind != ValueKind::number) return value;
  const auto number = evaluate(text, hidden_size);
  if (!number) return value;
  if (!is_integer) return *number;
  const auto integer = truncated(*number);
  return integer ? json::value(*integer) : value;
}

}  // namespace dstune
