#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "core/base/control_groups.hpp"
#include "core/base/memory_bounds.hpp"
#include "core/base/text.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/products/product_libraries.hpp"

namespace dstune::cpu {

namespace {

// x86 says "model name"; other architectures have no such line everywhere.
std::string processor() {
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

Bytes pages(int name) {
  return static_cast<Bytes>(sysconf(name)) * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

// With what the kernel would give up of its caches, which free pages leave out.
Bytes available_memory() {
  const auto kibibytes = number_of(read_kernel_file("/proc/meminfo"), "MemAvailable");
  return kibibytes ? *kibibytes << 10U : pages(_SC_AVPHYS_PAGES);
}

}  // namespace

DeviceInfo describe_device(const Placement& /*placement*/) {
  DeviceInfo info;
  info.backend = "cpu";
  info.name = processor();
  info.memory = pages(_SC_PHYS_PAGES);
  info.free_memory = available_memory();
  info.is_shared = true;
  info.bounds = memory_bounds();
  info.libraries = product_libraries();
  return info;
}

}  // namespace dstune::cpu
