#include "core/config/deepspeed/earlier_forms.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_table.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

namespace table = deepspeed_table;

// Whether a removed key asked for nothing: false, null, {}, -1 ranks, or a section not enabled.
bool is_off(const json::value& value) {
  if (value.is_null() || value == false || is_auto(value)) return true;
  if (const auto number = as_integer(value)) return *number <= 0;
  const auto* const section = value.if_object();
  if (section == nullptr) return false;
  if (section->empty()) return true;
  const auto* const enabled = section->if_contains("enabled");
  return enabled != nullptr && is_off(*enabled);
}

bool contains(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// Whether the key stays.
bool keeps_removed(std::string_view key, const json::value& value, const std::string& place,
                   Problems& problems) {
  const std::string refuses = concat("DeepSpeed ", table::kVersion, " refuses files with it");
  if (is_off(value)) {
    problems.warn(place, concat("is left out: it is off, and ", refuses));
    return false;
  }
  if (key.starts_with("mics_")) {
    problems.warn(place, concat("is modelled, but ", refuses, ": it needs an earlier release"));
    return true;
  }
  problems.add(place, concat("is not supported any more: ", refuses, "; remove it"));
  return false;
}

json::object without_removed(const json::object& object, std::span<const std::string_view> removed,
                             std::string_view pointer, Problems& problems) {
  json::object rest;
  for (const auto& member : object) {
    const std::string_view key(member.key());
    if (!contains(removed, key) ||
        keeps_removed(key, member.value(), child(pointer, key), problems)) {
      rest[member.key()] = member.value();
    }
  }
  return rest;
}

}  // namespace

json::object without_earlier_forms(const json::object& file, Problems& problems) {
  json::object rest = without_removed(file, table::kRemovedAtTop, "", problems);
  auto* const zero = rest.if_contains("zero_optimization");
  if (zero == nullptr) return rest;
  if (zero->is_bool()) {
    const int stage = zero->get_bool() ? 1 : 0;
    problems.warn("/zero_optimization",
                  concat("is ", describe(*zero), ", the old form of {\"stage\": ", stage, "}"));
    *zero = json::object{{"stage", stage}};
  } else if (const auto* const section = zero->if_object()) {
    *zero = without_removed(*section, table::kRemovedInZero, "/zero_optimization", problems);
  }
  return rest;
}

}  // namespace dstune
