// What a rank tells rank 0 about itself and its machine at start-up.
#pragma once

#include <string>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

struct WorkerInfo {
  int rank = 0;
  std::string host;
  std::string machine;      ///< CPU model: "AMD EPYC 9534 64-Core Processor"
  int cores = 0;            ///< that this process may run on
  Bytes memory_bytes = 0;   ///< physical memory of the host
  int workers_on_host = 0;  ///< ranks >= 1 with this host name, this one included; 0: not known
  int pid = 0;
  std::string process_space;  ///< equal on two ranks: a pid means the same process to both

  bool operator==(const WorkerInfo&) const = default;
};

/// The calling process; workers_on_host is rank 0's to fill in.
WorkerInfo describe_this_process(int rank);

json::object to_json(const WorkerInfo& info);
/// Inverse of to_json. @throws std::exception  if `object` is no WorkerInfo
WorkerInfo worker_info_from_json(const json::object& object);

/// True if `mine` and `other` share host and process space, so that vanished() can be trusted.
bool sees_process(const WorkerInfo& mine, const WorkerInfo& other);

/// True if there is no process `pid` any more.
bool vanished(int pid);

}  // namespace dstune
