#include "core/base/host/this_host.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>

#include <sched.h>
#include <unistd.h>

#include "core/base/text.hpp"

namespace dstune {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string process_space() {
  std::array<char, 128> link{};
  const auto length = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : "";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

Bytes last_level_cache() {
  constexpr int kMostLevels = 8;
  Bytes largest = 0;
  for (int index = 0; index < kMostLevels; ++index) {
    std::ifstream file(concat("/sys/devices/system/cpu/cpu0/cache/index", index, "/size"));
    Bytes size = 0;
    char unit = ' ';
    if (!(file >> size >> unit)) continue;
    size <<= unit == 'M' ? 20U : unit == 'K' ? 10U : 0U;
    largest = std::max(largest, size);
  }
  return largest;
}

}  // namespace dstune
