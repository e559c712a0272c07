#include "core/config/problems.hpp"

#include <utility>

#include "core/base/text.hpp"

namespace dstune {

void Problems::add(std::string where, std::string what) {
  constexpr std::size_t kMostShown = 50;
  if (list_.size() == kMostShown) {
    ++left_out_;
  } else {
    list_.push_back({std::move(where), std::move(what)});
  }
}

void Problems::add_all(const Problems& file) {
  for (const auto& problem : file.list_) {
    const bool is_pointer = !problem.where.empty() && problem.where.front() == '/';
    add(concat(file.source_, is_pointer ? "#" : ": ", problem.where), problem.what);
  }
  left_out_ += file.left_out_;
}

void Problems::throw_if_any() const {
  if (empty()) return;
  auto shown = list_;
  if (left_out_ > 0) shown.push_back({"...", concat("and ", left_out_, " more")});
  throw ConfigError(source_, std::move(shown));
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string shown(text.substr(0, kLongest));
  if (text.size() > kLongest) {
    // A cut inside a UTF-8 sequence would make the message invalid.
    while (!shown.empty() && (static_cast<unsigned char>(shown.back()) & 0xC0U) == 0x80U) {
      shown.pop_back();
    }
    if (!shown.empty() && static_cast<unsigned char>(shown.back()) >= 0xC0U) shown.pop_back();
    shown += "...";
  }
  for (char& letter : shown) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20U || code == 0x7FU) letter = '?';
  }
  return concat('"', shown, '"');
}

std::string describe(const json::value& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.get_array().empty() ? "an empty list" : "a list";
  if (value.is_string()) return in_quotes(std::string_view(value.get_string()));
  return to_json_text(value, 0);
}

std::string child(std::string_view pointer, std::string_view key) {
  std::string path = concat(pointer, '/');
  for (const char letter : key) {
    if (letter == '~') {
      path += "~0";
    } else if (letter == '/') {
      path += "~1";
    } else {
      path += static_cast<unsigned char>(letter) < 0x20U ? '?' : letter;
    }
  }
  return path;
}

std::string child(std::string_view pointer, std::size_t index) {
  return concat(pointer, '/', index);
}

}  // namespace dstune
