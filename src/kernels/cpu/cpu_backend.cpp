#include "kernels/cpu/cpu_backend.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/host/control_groups.hpp"
#include "core/base/host/memory_bounds.hpp"
#include "core/base/text.hpp"
#include "kernels/cpu/allocator.hpp"
#include "kernels/cpu/instructions.hpp"
#include "kernels/cpu/products/blas.hpp"
#include "kernels/cpu/products/product_libraries.hpp"

namespace dstune::cpu {

std::unique_ptr<Backend> make_backend(const Placement& /*placement*/) {
  keep_freed_memory();
  return std::make_unique<CpuBackend>(read_product_choice());
}

Device& CpuBackend::device(const DeviceShare& share) {
  set_threads(share.threads);
  const int threads = std::max(share.threads, 1);
  if (!device_ || device_->memory().limit() != share.memory_limit ||
      device_->host_threads() != threads) {
    device_.emplace(share.memory_limit, threads);
  }
  device_->products().use_onednn(types_, threads_);
  return *device_;
}

// A product that fails leaves them to be set again.
void CpuBackend::set_threads(int threads) {
  if (threads == threads_ || threads == 0) return;
  threads_ = 0;
  types_ = {};
  set_blas_threads(threads);
  take_blas_memory();
  types_ = choose_products(choice_, threads);
  threads_ = threads;
}

std::unique_ptr<Collectives> CpuBackend::collectives(Group& group,
                                                     const HostCollectives& over_host) {
  if (!device_) throw std::logic_error("CpuBackend: collectives() before device()");
  if (choice_ == ProductChoice::automatic) {
    // Each has measured for itself; a rank alone with its choice would keep the others waiting.
    const bool fp32 = group.vote(types_.fp32);
    const bool bf16 = group.vote(types_.bf16);
    device_->products().use_onednn({.fp32 = fp32, .bf16 = bf16}, threads_);
  }
  return over_host(*device_);
}

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

// What a wrong variable means is said where the backend is made.
std::string fp32_caveat_here() {
  try {
    return fp32_caveat(read_product_choice(), maker_of_processor());
  } catch (const ConfigError&) {
    return "";
  }
}

Bytes pages(int name) {
  return static_cast<Bytes>(sysconf(name)) * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

// MemAvailable counts what the kernel would give up of its caches, which free pages leave out.
Bytes available_memory() {
  const auto kibibytes = number_of(read_kernel_file("/proc/meminfo"), "MemAvailable");
  return kibibytes ? *kibibytes << 10U : pages(_SC_AVPHYS_PAGES);
}

}  // namespace

DeviceInfo describe_device(const Placement& /*placement*/) {
  DeviceInfo info;
  info.backend = "cpu";
  if (const std::string lacking = lacking_instructions(); !lacking.empty()) {
    info.unusable =
        concat("this program was built for another processor, and this one lacks ", lacking);
    return info;
  }
  info.name = processor();
  info.memory = pages(_SC_PHYS_PAGES);
  info.free_memory = available_memory();
  info.is_shared = true;
  info.bounds = memory_bounds();
  info.libraries = product_libraries();
  info.fp32_caveat = fp32_caveat_here();
  return info;
}

}  // namespace dstune::cpu
