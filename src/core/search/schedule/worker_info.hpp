// The facts about itself and its machine that a rank tells rank 0 at start-up.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/device/backend.hpp"
#include "core/search/schedule/oom_kills.hpp"

namespace dstune {

struct WorkerInfo {
  int rank = 0;
  std::string host;
  int cores = 0;                    ///< the cores on which this process may run
  std::vector<DeviceInfo> devices;  ///< one per backend, the best first, usable or not
  int workers_on_host = 0;  ///< ranks >= 1 with this host name, this one included; 0: not known
  int pid = 0;
  std::string process_space;  ///< equal on two ranks: a pid means the same process to both
  OomKills oom_kills = {};    ///< the counts when the process started

  bool operator==(const WorkerInfo&) const = default;
};

/// The device of `backend` among `devices`; nullptr if there is none.
const DeviceInfo* find_device(const std::vector<DeviceInfo>& devices, const std::string& backend);

json::object to_json(const WorkerInfo& info);
/// Inverse of to_json. @throws std::exception  if `object` is no WorkerInfo
WorkerInfo worker_info_from_json(const json::object& object);

}  // namespace dstune
