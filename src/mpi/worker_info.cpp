#include "mpi/worker_info.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <string_view>

#include <sched.h>
#include <unistd.h>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

// x86 says "model name"; other architectures have no such line everywhere.
std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, colon));
    if (key == "model name" || key == "cpu model" || key == "cpu") {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "unknown CPU";
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

WorkerInfo describe_this_process(int rank) {
  WorkerInfo info;
  info.rank = rank;
  info.host = host_name();
  info.machine = cpu_model();
  info.cores = usable_cores();
  info.memory_bytes =
      static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
  info.pid = static_cast<int>(getpid());
  info.process_space = process_space();
  return info;
}

json::object to_json(const WorkerInfo& info) {
  return {{"rank", info.rank},
          {"host", info.host},
          {"machine", info.machine},
          {"cores", info.cores},
          {"memory_bytes", info.memory_bytes},
          {"workers_on_host", info.workers_on_host},
          {"pid", info.pid},
          {"process_space", info.process_space}};
}

WorkerInfo worker_info_from_json(const json::object& object) {
  WorkerInfo info;
  info.rank = object.at("rank").to_number<int>();
  info.host = std::string(object.at("host").as_string());
  info.machine = std::string(object.at("machine").as_string());
  info.cores = object.at("cores").to_number<int>();
  info.memory_bytes = object.at("memory_bytes").to_number<Bytes>();
  info.workers_on_host = object.at("workers_on_host").to_number<int>();
  info.pid = object.at("pid").to_number<int>();
  info.process_space = std::string(object.at("process_space").as_string());
  return info;
}

bool sees_process(const WorkerInfo& mine, const WorkerInfo& other) {
  return mine.host == other.host && !mine.process_space.empty() &&
         mine.process_space == other.process_space;
}

bool vanished(int pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

}  // namespace dstune
