#include "kernels/backends.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "core/device/backend_list.hpp"
#include "kernels/cpu/products/choose_products.hpp"
#include "kernels/cpu/products/onednn.hpp"
#include "kernels/cpu/products/product_libraries.hpp"
#include "kernels/cuda/cuda_info.hpp"

namespace dstune {

#define DSTUNE_DECLARE_BACKEND(name, ...)                            \
  namespace name {                                                   \
  DeviceInfo describe_device(const Placement& placement);            \
  std::unique_ptr<Backend> make_backend(const Placement& placement); \
  }
DSTUNE_BACKENDS(DSTUNE_DECLARE_BACKEND)
#undef DSTUNE_DECLARE_BACKEND

namespace {

struct Entry {
  BackendTraits traits;
  DeviceInfo (*describe)(const Placement&);
  std::unique_ptr<Backend> (*make)(const Placement&);
};

#define DSTUNE_ENTRY(name, ...) \
  Entry{traits_of_backend(#name), name::describe_device, name::make_backend},
/// The best first.
constexpr auto kEntries = [] {
  std::array entries = {DSTUNE_BACKENDS(DSTUNE_ENTRY)};
  std::ranges::sort(entries, {}, [](const Entry& entry) { return entry.traits.place; });
  return entries;
}();
#undef DSTUNE_ENTRY

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
  for (const Entry& entry : kEntries) {
    if (entry.traits.name == name) return entry;
    names.emplace_back(entry.traits.name);
  }
  throw Error(concat("backend ", name, " is unknown; accepted: ", join(names, ", ")));
}

DeviceInfo describe(const Entry& entry, const Placement& placement) {
  DeviceInfo device = entry.describe(placement);
  device.host_overhead = entry.traits.host_overhead;
  return device;
}

}  // namespace

std::vector<DeviceInfo> describe_devices(const Placement& placement) {
  std::vector<DeviceInfo> devices;
  devices.reserve(kEntries.size());
  for (const Entry& entry : kEntries) devices.push_back(describe(entry, placement));
  return devices;
}

std::unique_ptr<Backend> make_backend(const std::string& name, const Placement& placement) {
  return entry_of(name).make(placement);
}

std::unique_ptr<Backend> make_backend_to_ask(const std::string& name) {
  const Entry& entry = entry_of(name);
  return entry.traits.is_dear ? nullptr : entry.make({});
}

DeviceInfo measure_device(const std::string& name, Placement placement) {
  placement.is_worker = true;
  return describe(entry_of(name), placement);
}

LocalBackends local_backends() { return {describe_devices(), make_backend_to_ask, measure_device}; }

void check_environment() { cpu::read_product_choice(); }

std::string usable_backends() {
  std::vector<std::string> usable;
  for (const DeviceInfo& device : describe_devices()) {
    if (device.unusable.empty()) usable.push_back(device.backend);
  }
  return concat("backends: ", join(usable, ", "));
}

std::vector<std::string> library_lines() {
  std::vector<std::string> lines = {concat("BLAS: ", cpu::product_libraries())};
  for (auto& line : cuda::library_versions()) lines.push_back(std::move(line));
  return lines;
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
