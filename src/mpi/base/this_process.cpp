#include "mpi/base/this_process.hpp"

#include <cerrno>
#include <csignal>
#include <utility>

#include <unistd.h>

#include "core/base/host/this_host.hpp"

namespace dstune {

WorkerInfo describe_this_process(int rank, std::vector<DeviceInfo> devices) {
  WorkerInfo info;
  info.rank = rank;
  info.host = host_name();
  info.cores = usable_cores();
  info.devices = std::move(devices);
  info.pid = static_cast<int>(getpid());
  info.process_space = process_space();
  info.oom_kills = count_oom_kills();
  return info;
}

bool sees_process(const WorkerInfo& mine, const WorkerInfo& other) {
  return mine.host == other.host && !mine.process_space.empty() &&
         mine.process_space == other.process_space;
}

bool vanished(int pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace dstune
