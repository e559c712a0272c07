// Reads a checked section of the file into typed members.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/input/key_rules.hpp"

namespace dstune {

/// Checks a section once and gives its values. A value that is absent, null or wrong (which has
/// become a problem) leaves the member unchanged, at its default.
class SectionReader {
 public:
  SectionReader(const json::value& section, const Section& rules, std::string_view pointer,
                Problems& problems) {
    const KeyRule whole{.key = "", .kind = ValueKind::object, .section = &rules};
    if (auto checked = check_value(section, whole, pointer, problems)) {
      values_ = std::move(checked->get_object());
    }
  }

  /// The value; null if it is absent, null or wrong.
  const json::value* find(std::string_view key) const {
    const auto* value = values_.if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  template <class T>
  void read(std::string_view key, T& member) const {
    const auto* value = find(key);
    if (value == nullptr) return;
    if constexpr (std::is_same_v<T, bool>) {
      member = value->get_bool();
    } else if constexpr (std::is_arithmetic_v<T>) {
      member = value->to_number<T>();
    } else {
      member = json::value_to<T>(*value);
    }
  }

  template <class T>
  void read(std::string_view key, std::optional<T>& member) const {
    T inner{};
    if (find(key) == nullptr) return;
    read(key, inner);
    member = inner;
  }

 private:
  json::object values_;
};

}  // namespace dstune
