#include "core/search/space/canonical_name.hpp"

#include <cstdio>

#include "core/base/text.hpp"
#include "core/search/feasibility/batch_keys.hpp"

namespace dstune {
namespace {

std::string acronym(std::string_view key) {
  std::string letters;
  for (const std::string& part : split(key, '_')) letters += part.substr(0, 1);
  return letters;
}

// The text that Python's str() makes of a value, or repr() of one inside a list or a dictionary.
std::string python_text(const json::value& value, bool is_inside = false);

std::string python_list(const json::array& list) {
  std::vector<std::string> parts;
  for (const auto& element : list) parts.push_back(python_text(element, true));
  return concat('[', join(parts, ", "), ']');
}

std::string python_dictionary(const json::object& object) {
  std::vector<std::string> parts;
  for (const auto& member : object) {
    parts.push_back(
        concat('\'', std::string_view(member.key()), "': ", python_text(member.value(), true)));
  }
  return concat('{', join(parts, ", "), '}');
}

std::string python_text(const json::value& value, bool is_inside) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get_bool() ? "True" : "False";
  if (value.is_array()) return python_list(value.get_array());
  if (value.is_object()) return python_dictionary(value.get_object());
  if (!value.is_string()) return to_json_text(value, 0);
  const std::string text(value.get_string());
  return is_inside ? concat('\'', text, '\'') : text;
}

std::string value_text(const json::value& value) {
  constexpr double kShort = 9000;
  if (value.is_bool()) return value.get_bool() ? "T" : "F";
  if (!value.is_number() || !(value.to_number<double>() > kShort)) return python_text(value);
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value.to_number<double>());
  return text;
}

std::string offload_name(const json::value& section) {
  if (!section.is_object()) return "None_";
  std::string name;
  for (const auto& member : section.get_object()) {
    name += concat(acronym(std::string_view(member.key())), value_text(member.value()), '_');
  }
  return name;
}

// The last letter of the name is dropped, whatever it is, as in DeepSpeed.
std::string name_of_keys(const json::object& config, const TuningKeys& keys) {
  std::string name;
  for (const auto& member : config) {
    const std::string_view key(member.key());
    if (key == "arg_mappings") continue;
    if (key == "offload_param" || key == "offload_optimizer") {
      name += (key == "offload_param" ? "op_" : "oo_") + offload_name(member.value());
      continue;
    }
    if (member.value().is_object()) {
      const std::string inner = name_of_keys(member.value().get_object(), keys);
      if (!inner.empty()) name += inner + '_';
    }
    if (keys.contains(key)) name += concat(acronym(key), value_text(member.value()), '_');
  }
  if (!name.empty()) name.pop_back();
  return name;
}

}  // namespace

std::string canonical_name(const json::object& config, TuningKeys keys, std::string_view prefix) {
  keys.emplace(kMicroBatch);
  keys.emplace(kAccumulation);
  const std::string name = name_of_keys(config, keys);
  return concat(prefix, name.empty() ? "exp" : name);
}

}  // namespace dstune
