// What a JSON object may hold, as data: one line for each key with its type and range.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"

namespace dstune {

struct Section;

enum class ValueKind { boolean, integer, number, text, object, list, any };

/// The rule of one key. It is made by the functions below; a default range means no limit.
struct KeyRule {
  std::string_view key{};
  ValueKind kind = ValueKind::any;
  std::int64_t min = 0;  ///< the least integer
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  double low = -std::numeric_limits<double>::infinity();  ///< the least number
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;
  bool even = false;
  bool nullable = false;
  bool may_be_empty = false;   ///< texts: "" is accepted
  bool any_case = false;       ///< texts with choices: "FP16" is "fp16"
  bool of_texts = false;       ///< lists: the elements are texts
  bool takes_auto = false;     ///< "auto" is accepted too, which DeepSpeed itself understands there
  bool or_one = false;         ///< lists: a single element may stand for the list
  bool no_boolean = false;     ///< numbers: true is not taken for 1 (see coercions.hpp)
  std::string_view choices{};  ///< texts, list elements and booleans: "cpu|nvme"; "": any
  std::string_view alias{};    ///< another name of the key
  const Section* section = nullptr;  ///< objects: the rules of their keys
  std::string_view remark{};         ///< is put at the end of the message about a wrong value

  bool operator==(const KeyRule&) const = default;

  constexpr KeyRule or_null() const {
    auto rule = *this;
    rule.nullable = true;
    return rule;
  }
  constexpr KeyRule also(std::string_view name) const {
    auto rule = *this;
    rule.alias = name;
    return rule;
  }
  constexpr KeyRule must_be_even() const {
    auto rule = *this;
    rule.even = true;
    return rule;
  }
  constexpr KeyRule in_any_case() const {
    auto rule = *this;
    rule.any_case = true;
    return rule;
  }
  constexpr KeyRule or_auto() const {
    auto rule = *this;
    rule.takes_auto = true;
    return rule;
  }
  constexpr KeyRule or_a_single_one() const {
    auto rule = *this;
    rule.or_one = true;
    return rule;
  }
  constexpr KeyRule but_no_boolean() const {
    auto rule = *this;
    rule.no_boolean = true;
    return rule;
  }
  constexpr KeyRule because(std::string_view text) const {
    auto rule = *this;
    rule.remark = text;
    return rule;
  }
};

/// The rules of the keys of one object.
struct Section {
  std::span<const KeyRule> rules{};
  bool other_keys = false;  ///< keys without a rule are kept as they are; else they are a fault
  bool auto_is_default = false;  ///< DeepSpeed drops a key whose value is "auto"
  bool auto_is_kept = false;     ///< "auto" is left to the training program
  bool coerces = false;          ///< takes "true" for true, as pydantic does: see coercions.hpp
  bool takes_bits = false;       ///< 0 and 1 are taken for false and true, as in Python
  /// The warning about a key without a rule, if such keys are kept. A key that is nearly a known
  /// one is a fault then.
  std::string_view other_keys_warning{};
};

namespace rules {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

/// The rule of an integer, which may also be written as 5e8. Bounds are inclusive.
constexpr KeyRule integer(std::string_view key, std::int64_t min = 0, std::int64_t max = kNoLimit) {
  return {.key = key, .kind = ValueKind::integer, .min = min, .max = max};
}
constexpr KeyRule boolean(std::string_view key) { return {.key = key, .kind = ValueKind::boolean}; }
constexpr KeyRule only(std::string_view key, bool value) {
  return {.key = key, .kind = ValueKind::boolean, .choices = value ? "true" : "false"};
}
constexpr KeyRule at_least(std::string_view key, double low) {
  return {.key = key, .kind = ValueKind::number, .low = low};
}
constexpr KeyRule above(std::string_view key, double low) {
  return {.key = key, .kind = ValueKind::number, .low = low, .low_excluded = true};
}
constexpr KeyRule number(std::string_view key) { return {.key = key, .kind = ValueKind::number}; }
constexpr KeyRule within(std::string_view key, double low, double high) {
  return {.key = key, .kind = ValueKind::number, .low = low, .high = high};
}
constexpr KeyRule between(std::string_view key, double low, double high) {
  return {.key = key,
          .kind = ValueKind::number,
          .low = low,
          .high = high,
          .low_excluded = true,
          .high_excluded = true};
}
constexpr KeyRule fraction(std::string_view key) {
  return {.key = key, .kind = ValueKind::number, .low = 0, .high = 1};
}
constexpr KeyRule fraction_below_one(std::string_view key) {
  return {.key = key, .kind = ValueKind::number, .low = 0, .high = 1, .high_excluded = true};
}
constexpr KeyRule text(std::string_view key) { return {.key = key, .kind = ValueKind::text}; }
constexpr KeyRule any_text(std::string_view key) {
  return {.key = key, .kind = ValueKind::text, .may_be_empty = true};
}
constexpr KeyRule choice(std::string_view key, std::string_view choices) {
  return {.key = key, .kind = ValueKind::text, .choices = choices};
}
constexpr KeyRule list(std::string_view key) { return {.key = key, .kind = ValueKind::list}; }
constexpr KeyRule texts(std::string_view key, std::string_view choices = {}) {
  return {.key = key, .kind = ValueKind::list, .of_texts = true, .choices = choices};
}
constexpr KeyRule object(std::string_view key) { return {.key = key, .kind = ValueKind::object}; }
constexpr KeyRule object(std::string_view key, const Section& section) {
  return {.key = key, .kind = ValueKind::object, .section = &section};
}
constexpr KeyRule any(std::string_view key) { return {.key = key}; }

/// `table`, in which `ours` replace the rules of the same keys. Their aliases stay, and null is
/// accepted where either rule accepts it. A key that the table lacks does not compile.
template <std::size_t Count, std::size_t Changes>
consteval std::array<KeyRule, Count> overlaid(std::array<KeyRule, Count> rules,
                                              const KeyRule (&ours)[Changes]) {
  for (const KeyRule& change : ours) {
    std::size_t at = 0;
    while (at < Count && rules[at].key != change.key) ++at;
    if (at == Count) throw std::logic_error("no such key");
    const KeyRule before = rules[at];
    rules[at] = change;
    rules[at].alias = before.alias;
    rules[at].nullable = before.nullable || change.nullable;
  }
  return rules;
}
template <std::size_t Count, std::size_t Changes>
consteval std::array<KeyRule, Count> overlaid(const KeyRule (&table)[Count],
                                              const KeyRule (&ours)[Changes]) {
  return overlaid(std::to_array(table), ours);
}

/// The rules of `table`, and behind them those of `more`.
template <std::size_t Count, std::size_t Added>
consteval std::array<KeyRule, Count + Added> extended(const std::array<KeyRule, Count>& table,
                                                      const KeyRule (&more)[Added]) {
  std::array<KeyRule, Count + Added> rules{};
  for (std::size_t i = 0; i < Count; ++i) rules[i] = table[i];
  for (std::size_t i = 0; i < Added; ++i) rules[Count + i] = more[i];
  return rules;
}

}  // namespace rules

/// The right members of `object`, in its order: integers as integers, aliases under their keys, and
/// without "auto" where the section drops it. Every other member is a problem and left out, or a
/// warning of `problems`.
json::object check_section(const json::object& object, const Section& section,
                           std::string_view pointer, Problems& problems);

/// The normalised value if `rule` accepts it; otherwise none, and a problem at `pointer`.
std::optional<json::value> check_value(const json::value& value, const KeyRule& rule,
                                       std::string_view pointer, Problems& problems);

/// `value` as an integer if it is one: 5e8 and 500000000 are integers, 0.5 and "5" are not.
std::optional<std::int64_t> as_integer(const json::value& value);

/// The rule of `key`, which may be an alias; null if the section does not know it.
const KeyRule* find_rule(const Section& section, std::string_view key);

/// `value` as the section reads it before its rule is applied: "true" as true, if the section
/// coerces.
json::value as_taken(const json::value& value, const KeyRule& rule, const Section& section);

/// All keys and aliases of a section.
std::vector<std::string> known_keys(const Section& section);

/// The text ` did you mean "model"?` after a semicolon, or "" if no known word is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

/// `text` with small letters for A to Z.
std::string lower(std::string_view text);

bool is_auto(const json::value& value);

}  // namespace dstune
