#include "core/search/schedule/oom_kills.hpp"

#include "core/base/host/control_groups.hpp"
#include "core/base/json.hpp"

namespace dstune {

namespace {

using Count = std::optional<std::uint64_t>;

json::value to_value(const Count& count) { return count ? json::value(*count) : json::value(); }

Count from_value(const json::value& value) {
  return value.is_null() ? Count() : value.to_number<std::uint64_t>();
}

}  // namespace

OomKills count_oom_kills(const std::string& root) {
  const auto groups = memory_groups(root);
  return count_oom_kills_in(groups.empty() ? "" : groups.front().path, root);
}

OomKills count_oom_kills_in(const std::string& group, const std::string& root) {
  OomKills kills{group, std::nullopt, oom_kills_of_host(root)};
  for (const int version : {2, 1}) {
    if (group.empty() || kills.in_group) break;
    kills.in_group = oom_kills_in({version, group}, root);
  }
  return kills;
}

bool has_risen(const OomKills& before, const OomKills& after) {
  if (before.group == after.group && before.in_group && after.in_group) {
    return *after.in_group > *before.in_group;
  }
  return before.on_host && after.on_host && *after.on_host > *before.on_host;
}

json::object to_json(const OomKills& kills) {
  return {{"group", kills.group},
          {"in_group", to_value(kills.in_group)},
          {"on_host", to_value(kills.on_host)}};
}

OomKills oom_kills_from_json(const json::object& object) {
  return {std::string(object.at("group").as_string()), from_value(object.at("in_group")),
          from_value(object.at("on_host"))};
}

}  // namespace dstune
