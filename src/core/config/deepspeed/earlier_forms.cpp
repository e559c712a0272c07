#include "core/config/deepspeed/earlier_forms.hpp"

#include <algorithm>
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

const KeySince* find_removed(std::string_view pointer) {
  const auto rows = removed_keys();
  const auto found = std::ranges::find(rows, pointer, &KeySince::pointer);
  return found == rows.end() ? nullptr : &*found;
}

// True if the key stays in the file.
bool keeps(const std::string& place, const json::value& value, const DeepSpeedVersion& version,
           Problems& problems) {
  const KeySince* const removed = find_removed(place);
  if (removed == nullptr) return true;
  if (is_off(value)) {
    problems.warn(place, concat("is left out: it is off, and DeepSpeed ", table::kVersion,
                                " refuses files with it"));
    return false;
  }
  if (version < removed->since) return true;
  const std::string refuses = concat("DeepSpeed ", to_text(version), " refuses files with it");
  if (place.find("/mics_") != std::string::npos) {
    problems.warn(place, concat("is modelled, but ", refuses, ": it needs an earlier release"));
    return true;
  }
  problems.add(place, concat("is not supported any more: ", refuses, "; remove it"));
  return false;
}

json::object without_removed(const json::object& object, std::string_view pointer,
                             const DeepSpeedVersion& version, Problems& problems) {
  json::object rest;
  for (const auto& member : object) {
    const std::string place = child(pointer, std::string_view(member.key()));
    if (keeps(place, member.value(), version, problems)) rest[member.key()] = member.value();
  }
  return rest;
}

}  // namespace

json::object without_earlier_forms(const json::object& file, const DeepSpeedVersion& version,
                                   Problems& problems) {
  json::object rest = without_removed(file, "", version, problems);
  auto* const zero = rest.if_contains("zero_optimization");
  if (zero == nullptr) return rest;
  if (zero->is_bool()) {
    const int stage = zero->get_bool() ? 1 : 0;
    problems.warn("/zero_optimization",
                  concat("is ", describe(*zero), ", the old form of {\"stage\": ", stage, "}"));
    *zero = json::object{{"stage", stage}};
  } else if (const auto* const section = zero->if_object()) {
    *zero = without_removed(*section, "/zero_optimization", version, problems);
  }
  return rest;
}

}  // namespace dstune
