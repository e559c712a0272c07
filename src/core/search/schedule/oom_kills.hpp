// Finds out whether the system has ended a worker for want of memory, which it tells no process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// The number of processes that the out-of-memory killer has ended, as one process sees it.
struct OomKills {
  std::string group;  ///< the folder of the process's control group of memory; "": it has none
  std::optional<std::uint64_t> in_group;
  std::optional<std::uint64_t> on_host;

  bool operator==(const OomKills&) const = default;
};

/// The kills in the group of the calling process and on its host. @param root  as for
/// memory_groups()
OomKills count_oom_kills(const std::string& root = "");

/// The kills in the folder `group` of another process, and on this host. @param root  as for
/// memory_groups()
OomKills count_oom_kills_in(const std::string& group, const std::string& root = "");

/// Whether a process was ended between two counts: in the group, or on the host if the group's
/// count is not known.
bool has_risen(const OomKills& before, const OomKills& after);

json::object to_json(const OomKills& kills);
/// Inverse of to_json. @throws std::exception  if `object` is no OomKills
OomKills oom_kills_from_json(const json::object& object);

}  // namespace dstune
