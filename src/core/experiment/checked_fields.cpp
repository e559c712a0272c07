#include "core/experiment/checked_fields.hpp"

#include <stdexcept>

#include "core/base/text.hpp"

namespace dstune::fields {

void reject(std::string_view key, std::string_view expected) {
  throw std::invalid_argument(concat(key, " is no ", expected));
}

const json::object& section(const json::object& object, std::string_view key) {
  static const json::object empty;
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? value->get_object() : empty;
}

const json::value* find(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void read(const json::object& object, std::string_view key, bool& out) {
  const json::value* value = find(object, key);
  if (value == nullptr) return;
  if (!value->is_bool()) reject(key, "boolean");
  out = value->get_bool();
}

void read(const json::object& object, std::string_view key, double& out) {
  const json::value* value = find(object, key);
  if (value == nullptr) return;
  if (!value->is_number()) reject(key, "number");
  out = value->to_number<double>();
}

std::string read_text(const json::object& object, std::string_view key, std::string fallback) {
  const json::value* value = find(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) reject(key, "string");
  return json::value_to<std::string>(*value);
}

bool is_on(const json::object& object, std::string_view key) {
  const json::value* found = find(object, key);
  if (found != nullptr && found->is_string() && found->get_string() == "auto") return false;
  bool value = false;
  read(object, key, value);
  return value;
}

}  // namespace dstune::fields
