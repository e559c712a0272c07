#include "core/config/trainer/translation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_json.hpp"

namespace dstune {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: up to here a double is exact

bool is_on(const json::value& value) {
  if (value.is_null()) return false;
  if (value.is_bool()) return value.get_bool();
  if (value.is_number()) return value.to_number<double>() != 0;
  if (value.is_array()) return !value.get_array().empty();
  if (value.is_object()) return !value.get_object().empty();
  const std::string text = lower(value.get_string());
  return !text.empty() && text != "none" && text != "no" && text != "false";
}

std::optional<double> number_in(const json::value& value) {
  if (value.is_number()) return value.to_number<double>();
  const auto* const text = value.if_string();
  if (text == nullptr || text->empty()) return std::nullopt;
  double number = 0;
  const char* const last = text->data() + text->size();
  const auto [end, fault] = std::from_chars(text->data(), last, number);
  if (fault != std::errc() || end != last || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string shown(const json::value& value) {
  constexpr std::size_t kMostShown = 80;
  const std::string text = to_json_text(value, 0);
  return text.size() <= kMostShown ? text : describe(value);
}

// Rows have the length of "sequence_length" beside packed samples alone: else "lengths" says it
// all.
bool has_own_lengths(const json::object& dstune) {
  const json::value* const lengths = dstune.if_contains("lengths");
  if (lengths == nullptr) return false;
  const json::value* const batches =
      lengths->is_object() ? lengths->get_object().if_contains("batches") : nullptr;
  return batches == nullptr || *batches != "packed";
}

}  // namespace

Translation::Translation(const json::object& given, std::filesystem::path path, Problems& problems)
    : given_(given), path_(std::move(path)), problems_(problems) {}

Translation Translation::section(std::string_view key, const json::object& given) const {
  Translation inner(given, path_, problems_);
  inner.pointer_ = child(pointer_, key);
  return inner;
}

const json::value* Translation::find(std::string_view key) {
  read_.emplace(key);
  const json::value* const value = given_.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> Translation::flag(std::string_view key) {
  const json::value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  if (const auto* const text = value->if_string()) {
    const std::string word = lower(*text);
    if (word == "true" || word == "yes" || word == "1") return true;
    if (word == "false" || word == "no" || word == "0") return false;
  }
  fault(key, concat("is ", describe(*value), "; accepted: true, false"));
  return std::nullopt;
}

std::optional<std::int64_t> Translation::integer(std::string_view key, std::int64_t least) {
  const json::value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = number_in(*value);
  const bool is_whole =
      number && std::abs(*number) <= kExactIntegers && *number == std::floor(*number);
  if (is_whole && *number >= static_cast<double>(least)) return static_cast<std::int64_t>(*number);
  fault(key, concat("is ", describe(*value), "; accepted: an integer >= ", least));
  return std::nullopt;
}

std::optional<double> Translation::number(std::string_view key) {
  const json::value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = number_in(*value);
  if (!number) fault(key, concat("is ", describe(*value), "; accepted: a number"));
  return number;
}

std::optional<std::string> Translation::text(std::string_view key) {
  const json::value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* const text = value->if_string()) return std::string(*text);
  fault(key, concat("is ", describe(*value), "; accepted: a string"));
  return std::nullopt;
}

void Translation::set(std::string_view dstune_key, json::value value, std::string_view from) {
  note_origin(dstune_key, value, from);
  dstune_[dstune_key] = std::move(value);
}

void Translation::note_origin(std::string_view key, const json::value& value,
                              std::string_view from) {
  origins_.push_back(
      {std::string(key), shown(value), concat(from, is_given(from) ? "" : "'s default")});
}

bool Translation::is_given(std::string_view dotted) const {
  const json::object* section = &given_;
  const json::value* value = nullptr;
  for (const auto& key : split(dotted, '.')) {
    value = section == nullptr ? nullptr : section->if_contains(key);
    section = value == nullptr ? nullptr : value->if_object();
  }
  return value != nullptr && !value->is_null();
}

void Translation::yield_to_file(std::string_view key, std::string_view own_key,
                                const json::value& own) {
  const auto said = std::ranges::find(origins_, key, &Origin::key);
  if (said == origins_.end()) return;
  if (key != own_key || own != dstune_.at(key)) {
    note(concat("the DeepSpeed file's dstune.", own_key, ", ", shown(own), ", overrides ", key, " ",
                said->value, " from ", said->from));
  }
  std::erase_if(origins_, [&](const Origin& origin) { return origin.key == key; });
}

std::optional<json::object> Translation::read_deepspeed(std::string_view key) {
  const json::value* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return own_copy(value->get_object());
  const auto name = text(key);
  if (!name || name->empty()) return std::nullopt;
  std::filesystem::path file = *name;
  std::error_code ignored;
  if (file.is_relative() && !std::filesystem::exists(file, ignored)) {
    file = path_.parent_path() / file;
  }
  Problems own(file.string());
  const auto content = read_json_file(file, "", own);
  if (content && !content->is_object()) {
    own.add("file", concat("is ", describe(*content), "; accepted: a DeepSpeed configuration"));
  }
  problems_.add_all(own);
  if (!content || !content->is_object()) return std::nullopt;
  return own_copy(content->get_object());
}

void Translation::leave_out(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    const json::value* const value = find(key);
    if (value == nullptr || !is_on(*value)) continue;
    problems_.warn(child(pointer_, key),
                   concat("is ", describe(*value),
                          ", which is not modelled: the step is measured without it"));
  }
}

void Translation::refuse(std::span<const std::string_view> keys, std::string_view why) {
  for (const std::string_view key : keys) {
    const json::value* const value = find(key);
    if (value != nullptr && is_on(*value)) fault(key, concat("is ", describe(*value), ", ", why));
  }
}

void Translation::warn_of_unknown(std::span<const std::string_view> without_effect) {
  for (const auto& member : given_) {
    const std::string_view key = member.key();
    if (read_.contains(key) || std::ranges::count(without_effect, key) > 0) continue;
    problems_.warn(child(pointer_, key), "is unknown here and has no effect");
  }
}

json::object Translation::config(json::object deepspeed) {
  if (dstune_.empty()) return deepspeed;
  json::value& own = deepspeed["dstune"];
  if (own.is_null()) own.emplace_object();
  if (!own.is_object()) return deepspeed;  // a fault for whoever reads it
  json::object& section = own.get_object();
  for (const auto& member : dstune_) {
    const std::string_view key = member.key();
    const bool is_length = key == "sequence_length" && has_own_lengths(section);
    const std::string_view own_key = is_length ? "lengths" : key;
    if (const json::value* const value = section.if_contains(own_key)) {
      yield_to_file(key, own_key, *value);
    } else {
      section[key] = member.value();
    }
  }
  return deepspeed;
}

std::vector<std::string> Translation::notes() const {
  std::vector<std::string> all;
  std::vector<std::string> origins;
  for (const Origin& origin : origins_) {
    origins.push_back(concat(origin.key, " ", origin.value, " from ", origin.from));
  }
  if (!origins.empty()) all.push_back(concat(file_name(), ": ", join(origins, ", ")));
  all.insert(all.end(), notes_.begin(), notes_.end());
  return all;
}

void Translation::fault(std::string_view key, std::string_view what) {
  problems_.add(child(pointer_, key), std::string(what));
}

}  // namespace dstune
