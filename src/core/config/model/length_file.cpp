#include "core/config/model/length_file.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/text.hpp"
#include "core/input/coercions.hpp"
#include "core/input/read_json.hpp"
#include "core/input/read_text.hpp"

namespace dstune {

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20U;
constexpr std::int64_t kMostOfLengths =
    1'000'000'000'000;  // of lengths, and of sequences of one length
constexpr const char* kAccepted = "; accepted: LENGTH or LENGTH,COUNT, both above 0";

bool is_count(std::int64_t number) { return number > 0 && number <= kMostOfLengths; }

std::optional<std::int64_t> count_from(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = fault == std::errc() && end == text.data() + text.size();
  return is_whole && is_count(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> count_from(const json::value& value) {
  const auto number = as_integer(value);
  return number && is_count(*number) ? number : std::nullopt;
}

std::optional<LengthCount> line_from(std::string_view line) {
  const auto parts = split(line, ',');
  if (parts.size() > 2) return std::nullopt;
  const auto length = count_from(trim(parts.front()));
  const auto count = parts.size() == 1 ? 1 : count_from(trim(parts.back()));
  if (!length || !count) return std::nullopt;
  return LengthCount{*length, *count};
}

bool has_letters(std::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

std::vector<LengthCount> read_lines(std::string_view text, Problems& problems) {
  std::vector<LengthCount> counts;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (++number == 1 && has_letters(line)) continue;
    if (line.empty()) continue;
    if (const auto count = line_from(line)) {
      counts.push_back(*count);
    } else {
      problems.add(concat("line ", number), concat("is ", in_quotes(line), kAccepted));
    }
  }
  return counts;
}

std::optional<LengthCount> element_from(const json::value& value) {
  const auto* const pair = value.if_array();
  if (pair != nullptr && pair->size() != 2) return std::nullopt;
  const auto length = count_from(pair == nullptr ? value : pair->front());
  const auto count = pair == nullptr ? 1 : count_from(pair->back());
  if (!length || !count) return std::nullopt;
  return LengthCount{*length, *count};
}

std::vector<LengthCount> read_object(const json::object& object, Problems& problems) {
  std::vector<LengthCount> counts;
  for (const auto& member : object) {
    const auto length = count_from(std::string_view(member.key()));
    const auto count = count_from(member.value());
    if (length && count) {
      counts.push_back({*length, *count});
    } else {
      problems.add(child("", std::string_view(member.key())),
                   concat("is ", describe(member.value()),
                          "; accepted: \"LENGTH\": COUNT, both integers above 0"));
    }
  }
  return counts;
}

std::vector<LengthCount> read_list(const json::array& list, Problems& problems) {
  std::vector<LengthCount> counts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (const auto count = element_from(list[i])) {
      counts.push_back(*count);
    } else {
      problems.add(child("", i), concat("is ", describe(list[i]),
                                        "; accepted: LENGTH or [LENGTH, COUNT], both above 0"));
    }
  }
  return counts;
}

std::vector<LengthCount> read_text(const std::string& text, Problems& problems) {
  const std::string_view start = trim(text);
  const bool is_json = start.starts_with('{') || start.starts_with('[');
  if (!is_json) return read_lines(text, problems);
  const auto value = parse_config_json(text, "", problems, {.max_bytes = kMostBytes});
  if (!value) return {};
  return value->is_object() ? read_object(value->get_object(), problems)
                            : read_list(value->get_array(), problems);
}

}  // namespace

std::vector<LengthCount> gathered(std::vector<LengthCount> counts) {
  std::map<std::int64_t, std::int64_t> by_length;
  for (const LengthCount& each : counts) by_length[each.length] += each.count;
  for (std::int64_t step = 2; by_length.size() > kMostLengths; ++step) {
    std::map<std::int64_t, std::int64_t> rounded;
    for (const LengthCount& each : counts) {
      rounded[(each.length + step - 1) / step * step] += each.count;
    }
    by_length = std::move(rounded);
  }
  counts.clear();
  for (const auto& [length, count] : by_length) counts.push_back({length, count});
  return counts;
}

std::vector<LengthCount> read_length_file(const std::filesystem::path& path, Problems& problems) {
  Problems in_file(path.string());
  const auto text = read_text_file(path, kMostBytes, in_file);
  std::vector<LengthCount> counts;
  if (text) counts = read_text(*text, in_file);
  if (text && counts.empty() && in_file.empty()) in_file.add("file", "has no lengths");
  problems.add_all(in_file);
  return in_file.empty() ? gathered(std::move(counts)) : std::vector<LengthCount>();
}

}  // namespace dstune
