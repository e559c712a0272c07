#include "core/config/command_line/host_list.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "core/base/text.hpp"

namespace dstune {

namespace {

using Names = std::vector<std::string>;

std::optional<std::int64_t> read_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string padded(std::int64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

// The names between brackets, "01-04,07".
std::optional<Names> expand_ranges(std::string_view text, std::size_t most) {
  Names numbers;
  for (const auto& part : split(text, ',')) {
    const std::string_view range(part);
    const auto dash = std::min(range.find('-'), range.size());
    const auto first = range.substr(0, dash);
    const auto begin = read_number(first);
    const auto end = dash == range.size() ? begin : read_number(range.substr(dash + 1));
    if (!begin || !end || *end < *begin) return std::nullopt;
    if (static_cast<std::uint64_t>(*end - *begin) >= most - numbers.size()) return std::nullopt;
    for (auto number = *begin; number <= *end; ++number) {
      numbers.push_back(padded(number, first.size()));
    }
  }
  return numbers;
}

bool is_list_of_numbers(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-,") == std::string_view::npos;
}

// The end of the first host of a list: a comma outside brackets.
std::size_t end_of_first(std::string_view text) {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) return i;
  }
  return text.size();
}

// Each of `beginnings` with each of `endings`.
std::optional<Names> combined(const Names& beginnings, const Names& endings, std::size_t most) {
  if (beginnings.size() > most / endings.size()) return std::nullopt;
  Names names;
  for (const auto& begin : beginnings) {
    for (const auto& end : endings) names.push_back(begin + end);
  }
  return names;
}

// One host with its brackets.
std::optional<Names> expand_one(std::string_view text, std::size_t most) {
  Names names = {""};
  while (!text.empty()) {
    const auto open = std::min(text.find('['), text.size());
    const auto close = text.find(']', open);
    Names parts = {std::string(text.substr(0, open))};
    const auto inner = close == std::string_view::npos ? std::string_view()
                                                       : text.substr(open + 1, close - open - 1);
    std::size_t used = open;
    if (is_list_of_numbers(inner)) {
      const auto numbers = expand_ranges(inner, most);
      if (!numbers) return std::nullopt;
      for (auto& number : *numbers) parts.push_back(parts.front() + number);
      parts.erase(parts.begin());
      used = close + 1;
    } else if (open < text.size()) {
      parts.front() = std::string(text);
      used = text.size();
    }
    auto longer = combined(names, parts, most);
    if (!longer) return std::nullopt;
    names = std::move(*longer);
    text.remove_prefix(used);
  }
  return names;
}

}  // namespace

std::optional<std::vector<std::string>> expand_host_list(std::string_view text, std::size_t most) {
  Names names;
  for (;;) {
    const auto end = end_of_first(text);
    auto hosts = expand_one(text.substr(0, end), most);
    if (!hosts || hosts->size() > most - names.size()) return std::nullopt;
    names.insert(names.end(), hosts->begin(), hosts->end());
    if (end == text.size()) return names;
    text.remove_prefix(end + 1);
  }
}

}  // namespace dstune
