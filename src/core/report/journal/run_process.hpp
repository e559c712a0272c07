// Which process tunes, so that others can tell whether it still lives and what it left behind.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json.hpp"

namespace dstune {

struct RunProcess {
  std::string host;
  int pid = 0;                   ///< 0: not known
  std::int64_t start_ticks = 0;  ///< since the host's boot: tells a process from a later one
  std::string process_space;     ///< equal for two processes: a pid means the same to both
  std::string launcher_folder;   ///< temporary folder of its launcher; "" if there is none

  bool operator==(const RunProcess&) const = default;
};

/// The calling process.
RunProcess this_process(std::string launcher_folder = "");

enum class Sight {
  alive,
  gone,
  unknown,  ///< on another host, or in another container
};

/// Whether `process` still lives, as far as it can be seen from here.
Sight look_for(const RunProcess& process);

json::object to_json(const RunProcess& process);
/// Inverse of to_json. @throws std::exception  if `object` is none
RunProcess run_process_from_json(const json::object& object);

}  // namespace dstune
