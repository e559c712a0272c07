#include "core/search/space/space.hpp"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <set>
#include <utility>

#include "core/base/text.hpp"
#include "core/experiment/knobs.hpp"
#include "core/search/feasibility/batch_keys.hpp"

namespace dstune {
namespace {

constexpr std::size_t kLongestName = 200;  // the longest name of a folder; file systems allow 255

// Replaces the letters that the name of a folder must not have.
std::string as_folder(std::string name) {
  for (char& sign : name) {
    if (sign == '/' || static_cast<unsigned char>(sign) < 0x20U) sign = '-';
  }
  return name;
}

// The order of keys in DeepSpeed's experiments: those of the template in its order, all others
// sorted.
json::object in_name_order(const json::object& order, const json::object& config) {
  const json::object sorted = sorted_by_key(config).as_object();
  json::object result;
  for (const auto& member : order) {
    const auto* const own = sorted.if_contains(member.key());
    if (own == nullptr) continue;
    const auto* const inner = member.value().if_object();
    result[member.key()] =
        inner != nullptr && own->is_object() ? in_name_order(*inner, own->get_object()) : *own;
  }
  for (const auto& member : sorted) result.insert(member);
  return result;
}

json::object as_spelt(json::object config, const AxisGroup& group,
                      const std::vector<std::vector<std::string>>& keys, std::size_t place) {
  for (std::size_t i = 0; i < group.tied.size(); ++i) {
    const Axis& axis = group.tied[i];
    set_at(config, keys[i], axis.spelt.empty() ? axis.values[place] : axis.spelt[place]);
  }
  return config;
}

}  // namespace

std::string with_number(const std::string& name, const json::object& config) {
  char number[16];
  const std::string content = sorted_json_text(config);
  std::snprintf(number, sizeof number, "_%08x",
                static_cast<unsigned>(hash_of(content) & 0xFFFFFFFFU));
  return name + number;
}

std::string_view name_of(SpaceOrigin origin) {
  if (origin == SpaceOrigin::users) return "user";
  return origin == SpaceOrigin::deepspeeds ? "deepspeed" : "default";
}

Space::Space(SpaceParts parts) : parts_(std::move(parts)), size_(parts_.points.size()) {
  json::object config = parts_.fixed;
  config[kMicroBatch] = 0;
  for (const AxisGroup& group : parts_.axes) {
    size_ *= group.size();
    keys_.emplace_back();
    idle_.push_back(std::all_of(group.tied.begin(), group.tied.end(), [&](const Axis& axis) {
      return does_nothing(axis.pointer, parts_.stage);
    }));
    for (const Axis& axis : group.tied) {
      keys_.back().push_back(keys_of(axis.pointer));
      if (axis.values.size() > 1) tuning_keys_.insert(keys_.back().back().back());
    }
    config = as_spelt(std::move(config), group, keys_.back(), 0);
  }
  if (parts_.names_accumulation) config[kAccumulation] = 0;
  name_fixed_ = in_name_order(parts_.name_order, config);
  find_clashes();
}

// Two names within one space differ if the names of one list's values do, so that each list is
// compared by itself.
void Space::find_clashes() {
  std::vector<std::size_t> places(parts_.axes.size() + 1, 0);
  for (std::size_t group = 0; group < parts_.axes.size(); ++group) {
    clashes_.emplace_back();
    std::set<std::string> seen;
    for (std::size_t i = 0; i < parts_.axes[group].size() && size_ > 0; ++i) {
      places[group] = i;
      clashes_.back().push_back(!seen.insert(plain_name(places)).second);
    }
    places[group] = 0;
  }
}

std::vector<std::size_t> Space::places(std::uint64_t index) const {
  assert(index < size_);
  std::vector<std::size_t> places(parts_.axes.size() + 1);
  places.back() = index % parts_.points.size();
  index /= parts_.points.size();
  for (std::size_t group = parts_.axes.size(); group-- > 0;) {
    const std::size_t count = parts_.axes[group].size();
    places[group] = index % count;
    index /= count;
  }
  return places;
}

std::uint64_t Space::first_alike(std::uint64_t index) const {
  const auto at = places(index);
  std::uint64_t first = 0;
  for (std::size_t group = 0; group < parts_.axes.size(); ++group) {
    first = first * parts_.axes[group].size() + (idle_[group] ? 0 : at[group]);
  }
  return first * parts_.points.size() + at.back();
}

Point Space::point(std::uint64_t index) const { return point_at(places(index)); }

Point Space::point_at(const std::vector<std::size_t>& places) const {
  Point point = parts_.points[places.back()];
  for (std::size_t group = 0; group < parts_.axes.size(); ++group) {
    for (const Axis& axis : parts_.axes[group].tied) {
      if (axis.pointer.substr(1) != kAccumulation) continue;
      point.accumulation_steps = axis.values[places[group]].get_int64();
    }
  }
  return point;
}

DeepSpeedConfig Space::config(std::uint64_t index) const {
  const auto at = places(index);
  const Point point = point_at(at);
  json::object config;
  config.reserve(parts_.fixed.size() + 4);
  config[kTrainBatch] = point.micro_batch * point.accumulation_steps * parts_.group_size;
  config[kMicroBatch] = point.micro_batch;
  config[kAccumulation] = point.accumulation_steps;
  for (const auto& member : parts_.fixed) config.insert(member);
  for (std::size_t group = 0; group < parts_.axes.size(); ++group) {
    for (std::size_t i = 0; i < parts_.axes[group].tied.size(); ++i) {
      set_at(config, keys_[group][i], parts_.axes[group].tied[i].values[at[group]]);
    }
  }
  return config;
}

std::string Space::plain_name(const std::vector<std::size_t>& places) const {
  const Point point = point_at(places);
  if (tuning_keys_.empty() && parts_.origin == SpaceOrigin::users) return name_of(point);
  json::object config = name_fixed_;
  for (std::size_t group = 0; group < parts_.axes.size(); ++group) {
    config = as_spelt(std::move(config), parts_.axes[group], keys_[group], places[group]);
  }
  config[kMicroBatch] = point.micro_batch;
  config[kAccumulation] = point.accumulation_steps;
  return as_folder(canonical_name(config, tuning_keys_, concat('z', parts_.stage, '_')));
}

std::string Space::name(std::uint64_t index) const {
  const auto at = places(index);
  std::string name = plain_name(at);
  bool clashes = name.size() > kLongestName;
  for (std::size_t group = 0; group < clashes_.size(); ++group) {
    clashes = clashes || clashes_[group][at[group]];
  }
  if (!clashes) return name;
  return with_number(name.substr(0, kLongestName), config(index).json());
}

}  // namespace dstune
