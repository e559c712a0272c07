#include "core/base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>

#include "core/base/printable.hpp"

namespace dstune {

namespace {

std::string number_text(double number) {
  if (!std::isfinite(number)) return "null";
  // Python's repr uses an exponent for the same numbers, which are hard to read without one.
  const double size = std::abs(number);
  const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
  char buffer[40];
  const auto result =
      std::to_chars(buffer, buffer + sizeof(buffer), number,
                    is_plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Text that JSON and people read as it is, so that no letter of it is escaped.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  });
}

using Member = const json::key_value_pair*;

class Writer {
 public:
  enum class Order { as_is, sorted };

  explicit Writer(int indent, Order order = Order::as_is) : indent_(indent), order_(order) {}

  void write(const json::value& value, int depth) {
    if (value.is_object()) {
      write_object(value.get_object(), depth);
    } else if (value.is_array()) {
      write_array(value.get_array(), depth);
    } else if (value.is_double()) {
      text_ += number_text(value.get_double());
    } else if (value.is_string()) {
      write_string(value.get_string());
    } else {
      text_ += printable_json(json::serialize(value));
    }
  }

  void write_object(const json::object& object, int depth) {
    if (object.empty()) {
      text_ += "{}";
      return;
    }
    text_ += '{';
    bool first = true;
    for_each_member(object, [&](const json::key_value_pair& member) {
      if (!first) text_ += ',';
      first = false;
      new_line(depth + 1);
      write_string(member.key());
      text_ += indent_ == 0 ? ":" : ": ";
      write(member.value(), depth + 1);
    });
    new_line(depth);
    text_ += '}';
  }

  std::string take() { return std::move(text_); }

 private:
  template <class Use>
  void for_each_member(const json::object& object, Use use) {
    if (order_ == Order::as_is) {
      for (const auto& member : object) use(member);
      return;
    }
    std::vector<Member> members;
    members.reserve(object.size());
    for (const auto& member : object) members.push_back(&member);
    std::ranges::sort(members, {}, [](Member member) { return std::string_view(member->key()); });
    for (Member member : members) use(*member);
  }

  void write_string(std::string_view text) {
    if (is_plain(text)) {
      text_.append(1, '"').append(text).append(1, '"');
    } else {
      text_ += printable_json(json::serialize(json::value(json::string(text))));
    }
  }

  void new_line(int depth) {
    if (indent_ == 0) return;
    text_ += '\n';
    text_.append(static_cast<std::size_t>(indent_) * static_cast<std::size_t>(depth), ' ');
  }

  void write_array(const json::array& array, int depth) {
    text_ += '[';
    bool first = true;
    for (const auto& element : array) {
      if (!first) text_ += indent_ == 0 ? "," : ", ";
      first = false;
      write(element, depth + 1);
    }
    text_ += ']';
  }

  int indent_;
  Order order_;
  std::string text_;
};

}  // namespace

std::string to_json_text(const json::value& value, int indent) {
  Writer writer(indent);
  writer.write(value, 0);
  return writer.take();
}

json::value sorted_by_key(const json::value& value) {
  if (value.is_array()) {
    json::array sorted;
    for (const auto& element : value.get_array()) sorted.push_back(sorted_by_key(element));
    return sorted;
  }
  if (!value.is_object()) return value;
  std::vector<std::string> keys;
  for (const auto& member : value.get_object()) keys.emplace_back(member.key());
  std::sort(keys.begin(), keys.end());
  json::object sorted;
  for (const auto& key : keys) sorted[key] = sorted_by_key(value.get_object().at(key));
  return sorted;
}

std::string sorted_json_text(const json::object& object) {
  Writer writer(0, Writer::Order::sorted);
  writer.write_object(object, 0);
  return writer.take();
}

std::string text_at(const json::object& object, std::string_view key) {
  return std::string(object.at(key).as_string());
}

}  // namespace dstune
