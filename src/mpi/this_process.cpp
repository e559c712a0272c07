#include "mpi/this_process.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include <sched.h>
#include <unistd.h>

namespace dstune {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

std::string process_space() {
  std::array<char, 128> link{};
  const auto length = readlink("/proc/self/ns/pid", link.data(), link.size());
  return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : "";
}

}  // namespace

WorkerInfo describe_this_process(int rank, std::vector<DeviceInfo> devices) {
  WorkerInfo info;
  info.rank = rank;
  info.host = host_name();
  info.cores = usable_cores();
  info.devices = std::move(devices);
  info.pid = static_cast<int>(getpid());
  info.process_space = process_space();
  return info;
}

bool sees_process(const WorkerInfo& mine, const WorkerInfo& other) {
  return mine.host == other.host && !mine.process_space.empty() &&
         mine.process_space == other.process_space;
}

bool vanished(int pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace dstune
