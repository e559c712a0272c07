#include "core/config/space/read_space.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/deepspeed/auto_values.hpp"
#include "core/config/space/axis_values.hpp"
#include "core/config/space/templates.hpp"
#include "core/config/space/user_lists.hpp"

namespace dstune {
namespace {

constexpr const char* kSpace = "/dstune/space";
constexpr const char* kPrecision = "/dstune/precision";

/// Reads dstune.space and dstune.precision.
struct SpaceReader {
  std::int64_t hidden_size;
  Problems& problems;
  SpaceConfig& space;

  void read(const json::value& given, const std::string& where) {
    if (given.is_object()) {
      read_object(given.get_object(), where);
    } else if (given.is_array() && !given.get_array().empty() && where == kSpace) {
      const auto& list = given.get_array();
      for (std::size_t i = 0; i < list.size(); ++i) read(list[i], child(where, i));
    } else if (given == "default") {
      space.with_default = true;
    } else if (given == "deepspeed") {
      space.with_deepspeeds = true;
    } else {
      problems.add(where, concat("is ", describe(given),
                                 "; accepted: \"default\", \"deepspeed\", {POINTER: values}, or a "
                                 "list of these"));
    }
  }

  void read_precision(const json::value& given, json::object& file) {
    Axis fp16{"/fp16/enabled", {}, {}};
    Axis bf16{"/bf16/enabled", {}, {}};
    const json::array list = given.is_array() ? given.get_array() : json::array{given};
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.size(); ++i) {
      constexpr KeyRule kRule = rules::choice("", "bf16|fp16|fp32");
      const auto name = check_value(list[i], kRule, child(kPrecision, i), problems);
      if (!name || !seen.emplace(name->get_string()).second) continue;
      fp16.values.emplace_back(*name == "fp16");
      bf16.values.emplace_back(*name == "bf16");
    }
    if (seen.empty()) {
      if (list.empty()) problems.add(kPrecision, "is an empty list; accepted: \"bf16\" and such");
      return;
    }
    const char* const section = file.contains("bfloat16") ? "bfloat16" : "bf16";
    set_at(file, {section, "enabled"}, bf16.values.front());
    set_at(file, {"fp16", "enabled"}, fp16.values.front());
    if (seen.size() > 1) space.all_stages.push_back({{std::move(bf16), std::move(fp16)}});
  }

 private:
  void read_object(const json::object& object, const std::string& where) {
    for (const auto& member : object) {
      const std::string key(member.key());
      const std::string place = child(where, key);
      const bool names_stage = key.size() == 2 && key[0] == 'z' && key[1] >= '0' && key[1] <= '3';
      if (!names_stage) {
        add_axis(key, member.value(), place, space.all_stages);
      } else if (!member.value().is_object()) {
        problems.add(place,
                     concat("is ", describe(member.value()), "; accepted: {POINTER: values}"));
      } else {
        auto& axes = space.of_stage[key[1] - '0'];
        for (const auto& inner : member.value().get_object()) {
          add_axis(std::string(inner.key()), inner.value(),
                   child(place, std::string_view(inner.key())), axes);
        }
      }
    }
  }

  void add_axis(const std::string& pointer, const json::value& given, const std::string& where,
                std::vector<AxisGroup>& axes) {
    const auto key = find_key(pointer, where, problems);
    if (!key) return;
    Axis axis = read_axis(*key, given, where, hidden_size, problems);
    if (!axis.values.empty()) axes.push_back({{std::move(axis)}});
  }
};

void check_once(const std::vector<AxisGroup>& groups, Problems& problems) {
  std::set<std::string> seen;
  for (const AxisGroup& group : groups) {
    for (const Axis& axis : group.tied) {
      for (const std::string& other : seen) {
        const bool same = other == axis.pointer;
        if (!same && !axis.pointer.starts_with(other + '/') &&
            !other.starts_with(axis.pointer + '/')) {
          continue;
        }
        problems.add(
            axis.pointer,
            same ? "is in two search lists; keep one of them"
                 : concat("and ", other, " are both searched, and one is inside the other"));
      }
      seen.insert(axis.pointer);
    }
  }
}

void check_size(const SpaceConfig& space, Problems& problems) {
  for (const int stage : {0, 1, 2, 3}) {
    std::uint64_t size = 1;
    for (const AxisGroup& group : space.axes_of(stage)) {
      size = std::min(kMostConfigurations + 1, size * group.size());
    }
    if (size <= kMostConfigurations) continue;
    problems.add(kSpace, concat("and the lists of the file make more than ", kMostConfigurations,
                                " configurations in stage ", stage, "; accepted: at most as many"));
    return;
  }
}

const json::value* member_of(const json::object& file, std::string_view key) {
  const auto* const section = file.if_contains("dstune");
  const auto* const dstune = section == nullptr ? nullptr : section->if_object();
  const auto* const value = dstune == nullptr ? nullptr : dstune->if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

}  // namespace

SpaceConfig take_space(json::object& file, bool fast, std::int64_t hidden_size,
                       Problems& problems) {
  SpaceConfig space;
  for (const std::string& pointer : find_auto(file)) space.open.insert(pointer);
  auto variables = take_templates(file, hidden_size, problems);
  space.all_stages = take_lists(file, hidden_size, problems);
  SpaceReader reader{hidden_size, problems, space};
  if (const auto* const precision = member_of(file, "precision")) {
    reader.read_precision(json::value(*precision), file);
  }
  space.has_lists = !space.all_stages.empty() || !variables.empty();
  const auto* const given = member_of(file, "space");
  if (given != nullptr) reader.read(*given, kSpace);
  space.all_stages.insert(space.all_stages.end(), variables.begin(), variables.end());
  const bool says_nothing = space.empty();
  if (!fast && given == nullptr) {
    space.with_deepspeeds = true;
    space.with_default = says_nothing;
  }
  if (const auto* const prune = member_of(file, "prune_dominated")) {
    space.prune_dominated = *prune == true;
  }
  check_once(space.all_stages, problems);
  for (const auto& [stage, groups] : space.of_stage) check_once(groups, problems);
  check_size(space, problems);
  return space;
}

}  // namespace dstune
