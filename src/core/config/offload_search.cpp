#include "core/config/offload_search.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr const char* kPointer = "/dstune/offload";
constexpr std::array<std::string_view, 3> kLevels = {"none", "optimizer",
                                                     "optimizer_and_parameters"};
constexpr std::array<std::string_view, 3> kWhen = {"never", "if_needed", "always"};
constexpr const char* kAcceptedLevels = R"("none", "optimizer", "optimizer_and_parameters")";

template <std::size_t kNames>
std::optional<std::size_t> place_of(std::string_view name,
                                    const std::array<std::string_view, kNames>& names) {
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

bool is_about_offload(std::string_view key) { return key.find("offload_") != key.npos; }

Axis axis(std::string_view key, const std::vector<json::value>& values) {
  return {concat("/zero_optimization/", key), values, {}};
}

void read_levels(const json::array& list, OffloadSearch& search, Problems& problems) {
  search.when = OffloadWhen::levels;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto place = list[i].is_string()
                           ? place_of(std::string_view(list[i].get_string()), kLevels)
                           : std::nullopt;
    if (!place) {
      problems.add(child(kPointer, std::to_string(i)),
                   concat("is ", describe(list[i]), "; accepted: ", kAcceptedLevels));
      continue;
    }
    const auto level = static_cast<OffloadLevel>(*place);
    if (std::ranges::find(search.levels, level) == search.levels.end()) {
      search.levels.push_back(level);
    }
  }
}

}  // namespace

AxisGroup offload_axes(int stage, const std::vector<OffloadLevel>& levels, bool pins) {
  std::vector<json::value> optimizer;
  std::vector<json::value> parameters;
  for (const OffloadLevel level : levels) {
    optimizer.emplace_back(level == OffloadLevel::none ? "none" : "cpu");
    parameters.emplace_back(level == OffloadLevel::optimizer_and_parameters ? "cpu" : "none");
  }
  // Written out always: the default of pin_memory is not the same in all releases.
  const std::vector<json::value> pinned(levels.size(), pins);
  AxisGroup group{
      {axis("offload_optimizer/device", optimizer), axis("offload_optimizer/pin_memory", pinned)}};
  if (stage < 3) return group;
  group.tied.push_back(axis("offload_param/device", parameters));
  group.tied.push_back(axis("offload_param/pin_memory", pinned));
  return group;
}

std::vector<OffloadLevel> OffloadSearch::levels_of(int stage) const {
  std::vector<OffloadLevel> of_stage = levels;
  if (when != OffloadWhen::levels) {
    of_stage = {OffloadLevel::optimizer, OffloadLevel::optimizer_and_parameters};
  }
  std::erase_if(of_stage, [&](OffloadLevel level) {
    return stage == 0 || (stage < 3 && level == OffloadLevel::optimizer_and_parameters);
  });
  return of_stage;
}

OffloadSearch read_offload_search(const json::value& value, Problems& problems) {
  OffloadSearch search;
  search.is_given = true;
  if (value.is_array() && !value.get_array().empty()) {
    read_levels(value.get_array(), search, problems);
    return search;
  }
  const auto place =
      value.is_string() ? place_of(std::string_view(value.get_string()), kWhen) : std::nullopt;
  if (place) {
    search.when = static_cast<OffloadWhen>(*place);
  } else {
    problems.add(kPointer, concat("is ", describe(value),
                                  R"(; accepted: "never", "if_needed", "always", or a list of )",
                                  kAcceptedLevels));
  }
  return search;
}

bool says_what_is_offloaded(const json::object& deepspeed, const SpaceConfig& space,
                            const std::vector<int>& stages) {
  const json::value* const zero = deepspeed.if_contains("zero_optimization");
  if (zero != nullptr && zero->is_object()) {
    for (const auto& member : zero->get_object()) {
      if (is_about_offload(member.key()) && member.value().is_object()) return true;
    }
  }
  const auto is_about_it = [&](const AxisGroup& group) {
    return std::ranges::any_of(group.tied,
                               [&](const Axis& axis) { return is_about_offload(axis.pointer); });
  };
  return std::ranges::any_of(
      stages, [&](int stage) { return std::ranges::any_of(space.axes_of(stage), is_about_it); });
}

}  // namespace dstune
