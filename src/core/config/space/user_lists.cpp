#include "core/config/space/user_lists.hpp"

#include <string>
#include <utility>

#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "core/config/space/axis_values.hpp"

namespace dstune {
namespace {

constexpr std::string_view kAccumulationKey = "gradient_accumulation_steps";

bool is_space(const json::value& value, const KeyRule& rule) {
  if (!value.is_array()) return false;
  if (rule.kind == ValueKind::any) return rule.key == kAccumulationKey;
  return rule.kind != ValueKind::list;
}

/// Collects the lists of a file.
struct ListTaker {
  std::int64_t hidden_size;
  Problems& problems;
  std::vector<AxisGroup> groups = {};

  void take(json::object& object, const Section& section, const std::string& pointer) {
    std::vector<std::string> wrong;
    for (auto& member : object) {
      const KeyRule* const rule = find_rule(section, std::string_view(member.key()));
      if (rule == nullptr) continue;
      const std::string place = child(pointer, std::string_view(member.key()));
      if (is_space(member.value(), *rule)) {
        if (!take_list(member.value(), place)) wrong.emplace_back(member.key());
      } else if (member.value().is_object() && rule->section != nullptr) {
        take(member.value().get_object(), *rule->section, place);
      }
    }
    for (const std::string& key : wrong) object.erase(key);
  }

 private:
  // @returns false, with a problem, if no value of the list is right
  bool take_list(json::value& list, const std::string& place) {
    const auto key = find_key(place, place, problems);
    if (!key) return false;
    Axis axis = read_axis(*key, list, place, hidden_size, problems);
    if (axis.values.empty()) return false;
    list = json::value(axis.values.front());
    if (axis.values.size() > 1) groups.push_back({{std::move(axis)}});
    return true;
  }
};

}  // namespace

std::vector<AxisGroup> take_lists(json::object& file, std::int64_t hidden_size,
                                  Problems& problems) {
  ListTaker taker{hidden_size, problems};
  taker.take(file, deepspeed_section(), "");
  return std::move(taker.groups);
}

}  // namespace dstune
