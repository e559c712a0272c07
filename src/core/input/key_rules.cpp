#include "core/input/key_rules.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"
#include "core/input/coercions.hpp"

namespace dstune {

namespace {

std::string accepted_integers(const KeyRule& rule) {
  const char* const noun = rule.even ? "an even integer" : "an integer";
  if (rule.min == rule.max) return concat(rule.min);
  if (rule.max == rules::kNoLimit) {
    return rule.min == rules::kLowest ? noun : concat(noun, " >= ", rule.min);
  }
  return concat(noun, " from ", rule.min, " to ", rule.max);
}

std::string accepted_numbers(const KeyRule& rule) {
  const char* const above = rule.low_excluded ? "> " : ">= ";
  if (std::isinf(rule.high)) {
    return std::isinf(rule.low) ? "a number" : concat("a number ", above, rule.low);
  }
  if (rule.high_excluded) return concat("a number ", above, rule.low, " and < ", rule.high);
  return concat("a number from ", rule.low, " to ", rule.high);
}

std::string accepted_texts(const KeyRule& rule) {
  if (rule.choices.empty()) return rule.may_be_empty ? "a string" : "a non-empty string";
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
      if (!rule.choices.empty()) return concat("a list of ", accepted_texts(rule));
      return rule.of_texts ? "a list of strings" : "a list";
    case ValueKind::any:
      break;
  }
  return "anything";
}

std::string accepted(const KeyRule& rule) {
  return concat(accepted_kind(rule), rule.takes_auto ? " or \"auto\"" : "",
                rule.nullable ? " or null" : "", rule.remark);
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

// The choice that `word` means, as the rule spells it.
std::optional<std::string> choice_of(std::string_view word, const KeyRule& rule) {
  for (auto& choice : split(rule.choices, '|')) {
    if (choice == word || (rule.any_case && lower(choice) == lower(word))) return choice;
  }
  return std::nullopt;
}

bool fits_text(const json::value& value, const KeyRule& rule) {
  if (!value.is_string()) return false;
  const std::string_view word(value.get_string());
  if (rule.choices.empty()) return rule.may_be_empty || !word.empty();
  return choice_of(word, rule).has_value();
}

bool fits_list(const json::value& value, const KeyRule& rule) {
  if (!value.is_array()) return false;
  const auto& list = value.get_array();
  return !rule.of_texts || std::all_of(list.begin(), list.end(), [&](const json::value& element) {
    return element.is_string() && (rule.choices.empty() || fits_text(element, rule));
  });
}

bool fits(const json::value& value, const KeyRule& rule) {
  switch (rule.kind) {
    case ValueKind::boolean:
      return value.is_bool() &&
             (rule.choices.empty() || choice_of(value.get_bool() ? "true" : "false", rule));
    case ValueKind::number:
      return fits_number(value, rule);
    case ValueKind::text:
      return fits_text(value, rule);
    case ValueKind::object:
      return value.is_object();
    case ValueKind::list:
      return fits_list(value, rule);
    case ValueKind::integer:
    case ValueKind::any:
      break;
  }
  return true;
}

bool has_value(const json::object& object, std::string_view key) {
  const auto* const value = object.if_contains(key);
  return value != nullptr && !value->is_null();
}

// True for a typing mistake in one of our keys; a key that belongs to somebody else and only looks
// like one of ours is rarely taken for one.
bool is_misspelt(std::string_view key, std::string_view near) {
  constexpr std::size_t kLettersPerSlip = 6;
  return !near.empty() &&
         edit_distance(key, near) <= std::max<std::size_t>(1, key.size() / kLettersPerSlip);
}

void report_unknown(std::string_view key, const Section& section, const std::string& place,
                    Problems& problems) {
  const auto known = known_keys(section);
  const std::string hint = suggestion(key, known);
  if (!section.other_keys) {
    problems.add(place, concat("is unknown", hint));
  } else if (!section.other_keys_warning.empty()) {
    if (is_misspelt(key, did_you_mean(key, known))) {
      problems.add(place, concat("is unknown and would have no effect", hint));
    } else {
      problems.warn(place, concat(section.other_keys_warning, hint));
    }
  }
}

}  // namespace

const KeyRule* find_rule(const Section& section, std::string_view key) {
  const auto found = std::find_if(
      section.rules.begin(), section.rules.end(),
      [&](const KeyRule& rule) { return rule.key == key || (!key.empty() && rule.alias == key); });
  return found == section.rules.end() ? nullptr : &*found;
}

json::value as_taken(const json::value& value, const KeyRule& rule, const Section& section) {
  const bool is_bit = rule.kind == ValueKind::boolean && value.is_number();
  return section.coerces || (section.takes_bits && is_bit) ? coerced(value, rule) : value;
}

std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_double()) return std::nullopt;
  const double number = value.get_double();
  if (!(std::abs(number) < 0x1p63) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
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
  if (is_auto(value) && rule.takes_auto) return value;
  if (rule.kind == ValueKind::integer) {
    const auto number = as_integer(value);
    if (number && fits_integer(*number, rule)) return json::value(*number);
  } else if (fits(value, rule)) {
    if (rule.any_case) return json::value(*choice_of(std::string_view(value.get_string()), rule));
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
      report_unknown(key, section, place, problems);
      if (section.other_keys) checked[member.key()] = member.value();
    } else if (rule->key != key && has_value(object, rule->key)) {
      problems.add(place,
                   concat("is another name of ", in_quotes(rule->key), "; keep one of them"));
    } else if (section.auto_is_kept && is_auto(member.value())) {
      checked[rule->key] = member.value();
    } else if (!(section.auto_is_default && is_auto(member.value()))) {
      const auto value =
          check_value(as_taken(member.value(), *rule, section), *rule, place, problems);
      if (value) checked[rule->key] = *value;
    }
  }
  return checked;
}

}  // namespace dstune
