// Functions that read the keys of a JSON that has been checked: a wrong type is the caller's fault.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune::fields {

/// Reports a member that is not of the expected kind. @throws std::invalid_argument  always
[[noreturn]] void reject(std::string_view key, std::string_view expected);

/// The member `key` if it is an object; otherwise an empty one.
const json::object& section(const json::object& object, std::string_view key);

/// The member `key`; nullptr if it is missing or null.
const json::value* find(const json::object& object, std::string_view key);

/// Both overloads of read() leave `out` as it is if there is no such member.
/// @throws std::invalid_argument  if the member has another type
void read(const json::object& object, std::string_view key, bool& out);
void read(const json::object& object, std::string_view key, double& out);

std::string read_text(const json::object& object, std::string_view key, std::string fallback);

/// True if the member is there and true. "auto" leaves the choice to the training program and
/// counts as off.
bool is_on(const json::object& object, std::string_view key);

/// Does the same as read() for integers >= 0, which may be written as 5e8.
template <class Integer>
void read_integer(const json::object& object, std::string_view key, Integer& out) {
  const json::value* value = find(object, key);
  if (value == nullptr) return;
  if (!value->is_number()) reject(key, "number");
  const auto number = value->to_number<double>();
  constexpr Integer kMost = std::numeric_limits<Integer>::max();
  const bool fits = value->is_double() ? number < static_cast<double>(kMost)
                                       : !value->is_uint64() && value->get_int64() <= kMost;
  if (number != std::floor(number) || number < 0 || !fits) {
    reject(key, concat("integer from 0 to ", kMost));
  }
  out = value->is_double() ? static_cast<Integer>(number) : value->to_number<Integer>();
}

}  // namespace dstune::fields
