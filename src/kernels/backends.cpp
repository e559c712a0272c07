#include "kernels/backends.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "kernels/cpu/cpu_backend.hpp"
#include "kernels/cpu/products/onednn.hpp"
#include "kernels/cuda/cuda_info.hpp"
#include "kernels/sim/sim_backend.hpp"

namespace dstune {

namespace {

using Describe = DeviceInfo (*)(const Placement&);
using Make = std::unique_ptr<Backend> (*)(const Placement&);

struct Entry {
  std::string_view name;
  std::string_view host_overhead;  ///< DeviceInfo::host_overhead
  Describe describe;
  Make make;
  bool is_dear;  ///< making it takes a part of the hardware
};

// Every process of a host sees the same of these.
template <DeviceInfo (*describe)()>
DeviceInfo anywhere(const Placement& /*placement*/) {
  return describe();
}

template <class Kind>
std::unique_ptr<Backend> made(const Placement& /*placement*/) {
  return std::make_unique<Kind>();
}

std::unique_ptr<Backend> made_cpu(const Placement& /*placement*/) {
  return std::make_unique<cpu::CpuBackend>(cpu::read_product_choice());
}

/// A new backend is a line here: the best first.
constexpr std::array kBackends = {
    Entry{"cuda", kCudaOverhead, cuda::describe_device, cuda::make_backend, true},
    Entry{"cpu", kGlooOverhead, anywhere<cpu::describe_device>, made_cpu, false},
    Entry{"sim", kCudaOverhead, anywhere<sim::describe_device>, made<sim::SimBackend>, false},
};

// "3.00 GiB of 64.00 GiB" where processes may not have all of it; tune.sh reads this.
std::string memory_text(const DeviceInfo& device) {
  Bytes bytes = device.memory;
  for (const MemoryBound& bound : device.bounds) bytes = std::min(bytes, bound.bytes);
  const std::string all = format_bytes(device.memory);
  return bytes < device.memory ? concat(format_bytes(bytes), " of ", all) : all;
}

/// @throws Error
const Entry& entry_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Entry& entry : kBackends) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  throw Error(concat("backend ", name, " is unknown; accepted: ", join(names, ", ")));
}

}  // namespace

std::vector<DeviceInfo> describe_devices(const Placement& placement) {
  std::vector<DeviceInfo> devices;
  devices.reserve(kBackends.size());
  for (const Entry& entry : kBackends) {
    devices.push_back(entry.describe(placement));
    devices.back().host_overhead = entry.host_overhead;
  }
  return devices;
}

std::unique_ptr<Backend> make_backend(const std::string& name, const Placement& placement) {
  return entry_of(name).make(placement);
}

std::unique_ptr<Backend> make_backend_to_ask(const std::string& name) {
  const Entry& entry = entry_of(name);
  return entry.is_dear ? nullptr : entry.make({});
}

void check_environment() { cpu::read_product_choice(); }

std::string usable_backends() {
  std::vector<std::string> usable;
  for (const DeviceInfo& device : describe_devices()) {
    if (device.unusable.empty()) usable.push_back(device.backend);
  }
  return concat("backends: ", join(usable, ", "));
}

std::vector<std::string> list_backends() {
  std::vector<std::string> lines = cuda::library_versions();
  for (auto& gpu : cuda::gpus()) lines.push_back(std::move(gpu));
  lines.push_back(
      concat("oneDNN: ", cpu::Onednn::is_there() ? cpu::Onednn::version() : "none in this build"));
  for (const DeviceInfo& device : describe_devices()) {
    lines.push_back(concat(device.backend, ": ",
                           device.unusable.empty()
                               ? concat("available (", device.name, ", ", memory_text(device), ")")
                               : concat("unavailable: ", device.unusable)));
  }
  return lines;
}

}  // namespace dstune
