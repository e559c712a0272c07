#include "core/config/space/axis.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include "core/base/text.hpp"

namespace dstune {
namespace {

json::value* element_of(json::array& list, std::string_view index) {
  std::size_t place = 0;
  const auto [end, fault] = std::from_chars(index.data(), index.data() + index.size(), place);
  const bool is_whole = fault == std::errc() && end == index.data() + index.size();
  return is_whole && place < list.size() ? &list[place] : nullptr;
}

json::value* child_of(json::value& parent, const std::string& key) {
  if (parent.is_object()) return parent.get_object().if_contains(key);
  return parent.is_array() ? element_of(parent.get_array(), key) : nullptr;
}

void set_in(json::value& parent, std::span<const std::string> keys, const json::value& value) {
  if (keys.empty()) {
    parent = value;
  } else if (parent.is_array()) {
    json::value* const element = element_of(parent.get_array(), keys.front());
    if (element != nullptr) set_in(*element, keys.subspan(1), value);
  } else {
    json::object& object = parent.is_object() ? parent.get_object() : parent.emplace_object();
    set_in(object[keys.front()], keys.subspan(1), value);
  }
}

bool names(const std::vector<AxisGroup>& groups, const std::string& pointer) {
  return std::any_of(groups.begin(), groups.end(), [&](const AxisGroup& group) {
    return std::any_of(group.tied.begin(), group.tied.end(),
                       [&](const Axis& axis) { return axis.pointer == pointer; });
  });
}

}  // namespace

std::vector<AxisGroup> SpaceConfig::axes_of(int stage) const {
  const auto own = of_stage.find(stage);
  if (own == of_stage.end()) return all_stages;
  std::vector<AxisGroup> groups;
  for (AxisGroup group : all_stages) {
    std::erase_if(group.tied, [&](const Axis& axis) { return names(own->second, axis.pointer); });
    if (!group.tied.empty()) groups.push_back(std::move(group));
  }
  groups.insert(groups.end(), own->second.begin(), own->second.end());
  return groups;
}

std::vector<std::string> keys_of(std::string_view pointer) {
  std::vector<std::string> keys;
  if (pointer.empty()) return keys;
  for (const std::string& step : split(pointer.substr(1), '/')) {
    std::string key;
    for (std::size_t i = 0; i < step.size(); ++i) {
      const bool escapes = step[i] == '~' && i + 1 < step.size();
      if (!escapes) {
        key += step[i];
      } else {
        key += step[++i] == '1' ? '/' : '~';
      }
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

json::value* find_at(json::value& root, const std::vector<std::string>& keys) {
  json::value* place = &root;
  for (const std::string& key : keys) {
    place = child_of(*place, key);
    if (place == nullptr) return nullptr;
  }
  return place;
}

void set_at(json::object& root, const std::vector<std::string>& keys, const json::value& value) {
  if (keys.empty()) return;
  set_in(root[keys.front()], std::span(keys).subspan(1), value);
}

}  // namespace dstune
