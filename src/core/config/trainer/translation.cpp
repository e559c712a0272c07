#include "core/config/trainer/translation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/text.hpp"
#include "core/input/read_json.hpp"

namespace dstune {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53: up to here a double is exact

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return result;
}

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
  fault(key, concat("is ", describe(*value), "; accepted: a text"));
  return std::nullopt;
}

void Translation::set(std::string_view dstune_key, json::value value, std::string_view from) {
  note_origin(dstune_key, value, from);
  dstune_[dstune_key] = std::move(value);
}

void Translation::note_origin(std::string_view key, const json::value& value,
                              std::string_view from) {
  constexpr std::size_t kMostShown = 80;
  const std::string text = to_json_text(value, 0);
  origins_.push_back(
      concat(key, " ", text.size() <= kMostShown ? text : describe(value), " from ", from));
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
    problems_.warn(child(pointer_, key), "is not known here, and has no effect");
  }
}

json::object Translation::config(json::object deepspeed) const {
  if (!dstune_.empty()) deepspeed["dstune"] = dstune_;
  return deepspeed;
}

std::vector<std::string> Translation::notes() const {
  std::vector<std::string> all;
  if (!origins_.empty()) all.push_back(concat(file_name(), ": ", join(origins_, ", ")));
  all.insert(all.end(), notes_.begin(), notes_.end());
  return all;
}

void Translation::fault(std::string_view key, std::string_view what) {
  problems_.add(child(pointer_, key), std::string(what));
}

}  // namespace dstune
