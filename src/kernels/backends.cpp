#include "kernels/backends.hpp"

#include <array>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cuda/cuda_info.hpp"
#include "kernels/sim/sim_backend.hpp"

namespace dstune {

namespace {

using Describe = DeviceInfo (*)();
using Make = std::unique_ptr<Backend> (*)();

struct Entry {
  std::string_view name;
  std::string_view host_overhead;  ///< DeviceInfo::host_overhead
  Describe describe;
  Make make;
};

template <class Kind>
std::unique_ptr<Backend> made() {
  return std::make_unique<Kind>();
}

/// A new backend is a line here: the best first.
constexpr std::array kBackends = {
    Entry{"cuda", kEstimatedOverhead, cuda::describe_device, cuda::make_backend},
    Entry{"cpu", kGlooOverhead, cpu::describe_device, made<cpu::CpuBackend>},
    Entry{"sim", kEstimatedOverhead, sim::describe_device, made<sim::SimBackend>},
};

}  // namespace

std::vector<DeviceInfo> describe_devices() {
  std::vector<DeviceInfo> devices;
  devices.reserve(kBackends.size());
  for (const Entry& entry : kBackends) {
    devices.push_back(entry.describe());
    devices.back().host_overhead = entry.host_overhead;
  }
  return devices;
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : kBackends) {
    if (entry.name == name) return entry.make();
    names.emplace_back(entry.name);
  }
  throw Error(concat("backend ", name, " is unknown; accepted: ", join(names, ", ")));
}

std::vector<std::string> describe_backends() {
  std::vector<std::string> usable;
  for (const DeviceInfo& device : describe_devices()) {
    if (device.unusable.empty()) usable.push_back(device.backend);
  }
  std::vector<std::string> lines = {concat("backends: ", join(usable, ", "))};
  for (const auto& gpu : cuda::gpus()) {
    lines.push_back(concat("GPU (not used: no CUDA training backend): ", gpu));
  }
  return lines;
}

}  // namespace dstune
