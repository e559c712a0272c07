// Whether the system has ended a worker for want of memory, which no process is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// How many processes the out-of-memory killer has ended, as one process sees it.
struct OomKills {
  std::string group;  ///< folder of its control group of memory; "": it has none
  std::optional<std::uint64_t> in_group;
  std::optional<std::uint64_t> on_host;

  bool operator==(const OomKills&) const = default;
};

/// In the group of the calling process. @param root  as for memory_groups()
OomKills count_oom_kills(const std::string& root = "");

/// In the folder `group`, another process's. @param root  likewise
OomKills count_oom_kills_in(const std::string& group, const std::string& root = "");

/// Whether somebody was ended between two counts: in the group, or on the host where that of the
/// group is not known.
bool has_risen(const OomKills& before, const OomKills& after);

json::object to_json(const OomKills& kills);
/// Inverse of to_json. @throws std::exception  if `object` is none
OomKills oom_kills_from_json(const json::object& object);

}  // namespace dstune
