#include "core/config/key_rules.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"

namespace dstune {

namespace {

std::string accepted_integers(const KeyRule& rule) {
  const char* const noun = rule.even ? "an even integer" : "an integer";
  if (rule.min == rule.max) return concat(rule.min);
  if (rule.max == rules::kNoLimit) return concat(noun, " >= ", rule.min);
  return concat(noun, " from ", rule.min, " to ", rule.max);
}

std::string accepted_numbers(const KeyRule& rule) {
  if (std::isinf(rule.high)) {
    return concat("a number ", rule.low_excluded ? "> " : ">= ", rule.low);
  }
  if (rule.high_excluded) return concat("a number >= ", rule.low, " and < ", rule.high);
  return concat("a number from ", rule.low, " to ", rule.high);
}

std::string accepted_texts(const KeyRule& rule) {
  if (rule.choices.empty()) return "a text that is not empty";
  auto words = split(rule.choices, '|');
  for (auto& word : words) word = in_quotes(word);
  return join(words, ", ");
}

std::string accepted_kind(const KeyRule& rule) {
  switch (rule.kind) {
    case ValueKind::boolean:
      return rule.choices.empty() ? "true or false" : std::string(rule.choices);
    case ValueKind::integer:
      return accepted_integers(rule);
    case ValueKind::number:
      return accepted_numbers(rule);
    case ValueKind::text:
      return accepted_texts(rule);
    case ValueKind::object:
      return "an object";
    case ValueKind::list:
      return "a list";
    case ValueKind::any:
      break;
  }
  return "anything";
}

std::string accepted(const KeyRule& rule) {
  return concat(accepted_kind(rule), rule.nullable ? " or null" : "", rule.remark);
}

bool fits_integer(std::int64_t number, const KeyRule& rule) {
  return number >= rule.min && number <= rule.max && (!rule.even || number % 2 == 0);
}

bool fits_number(const json::value& value, const KeyRule& rule) {
  if (!value.is_number()) return false;
  const auto number = value.to_number<double>();
  const bool low_fits = rule.low_excluded ? number > rule.low : number >= rule.low;
  return low_fits && (rule.high_excluded ? number < rule.high : number <= rule.high);
}

bool is_choice(std::string_view word, const KeyRule& rule) {
  if (rule.choices.empty()) return !word.empty();
  const auto words = split(rule.choices, '|');
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool fits(const json::value& value, const KeyRule& rule) {
  switch (rule.kind) {
    case ValueKind::boolean:
      return value.is_bool() && is_choice(value.get_bool() ? "true" : "false", rule);
    case ValueKind::number:
      return fits_number(value, rule);
    case ValueKind::text:
      return value.is_string() && is_choice(std::string_view(value.get_string()), rule);
    case ValueKind::object:
      return value.is_object();
    case ValueKind::list:
      return value.is_array();
    case ValueKind::integer:
    case ValueKind::any:
      break;
  }
  return true;
}

const KeyRule* find_rule(const Section& section, std::string_view key) {
  const auto found = std::find_if(
      section.rules.begin(), section.rules.end(),
      [&](const KeyRule& rule) { return rule.key == key || (!key.empty() && rule.alias == key); });
  return found == section.rules.end() ? nullptr : &*found;
}

}  // namespace

std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;
  const double number = value.get_double();
  if (!(std::abs(number) < 0x1p63) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

bool is_auto(const json::value& value) {
  return value.is_string() && std::string_view(value.get_string()) == "auto";
}

std::vector<std::string> known_keys(const Section& section) {
  std::vector<std::string> keys;
  for (const auto& rule : section.rules) {
    keys.emplace_back(rule.key);
    if (!rule.alias.empty()) keys.emplace_back(rule.alias);
  }
  return keys;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = did_you_mean(word, known);
  return near.empty() ? "" : concat("; did you mean ", in_quotes(near), "?");
}

std::optional<json::value> check_value(const json::value& value, const KeyRule& rule,
                                       std::string_view pointer, Problems& problems) {
  if (value.is_null() && rule.nullable) return value;
  if (rule.kind == ValueKind::integer) {
    const auto number = as_integer(value);
    if (number && fits_integer(*number, rule)) return json::value(*number);
  } else if (fits(value, rule)) {
    if (rule.section == nullptr) return value;
    return check_section(value.get_object(), *rule.section, pointer, problems);
  }
  const auto near = value.is_string() && !rule.choices.empty()
                        ? suggestion(std::string_view(value.get_string()), split(rule.choices, '|'))
                        : "";
  problems.add(std::string(pointer),
               concat("is ", describe(value), near,
                      near.empty() ? "; accepted: " : " accepted: ", accepted(rule)));
  return std::nullopt;
}

json::object check_section(const json::object& object, const Section& section,
                           std::string_view pointer, Problems& problems) {
  json::object checked;
  for (const auto& member : object) {
    const std::string_view key(member.key());
    const std::string place = child(pointer, key);
    const KeyRule* const rule = find_rule(section, key);
    if (rule == nullptr) {
      if (section.other_keys) {
        checked[member.key()] = member.value();
      } else {
        problems.add(place, concat("is unknown", suggestion(key, known_keys(section))));
      }
    } else if (rule->key != key && object.contains(rule->key)) {
      problems.add(place,
                   concat("is another name of ", in_quotes(rule->key), "; keep one of them"));
    } else if (!(section.auto_is_default && is_auto(member.value()))) {
      const auto value = check_value(member.value(), *rule, place, problems);
      if (value) checked[rule->key] = *value;
    }
  }
  return checked;
}

}  // namespace dstune
