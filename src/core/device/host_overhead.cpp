#include "core/device/host_overhead.hpp"

#include "core/base/json.hpp"

namespace dstune {

std::string_view name_of(HostEvent event) {
  constexpr std::array<std::string_view, kHostEvents> kNames = {
      "gradient_hook", "module_hook", "collective", "optimizer_tensor", "synchronization"};
  return kNames[static_cast<std::size_t>(event)];
}

HostOverhead default_host_overhead() {
  HostOverhead overhead;
  overhead.at(HostEvent::gradient_hook) = 50e-6;
  overhead.at(HostEvent::module_hook) = 150e-6;
  overhead.at(HostEvent::collective) = 60e-6;
  overhead.at(HostEvent::optimizer_tensor) = 60e-6;
  overhead.at(HostEvent::synchronization) = 20e-6;
  return overhead;
}

json::object to_json(const HostOverhead& overhead) {
  json::object object;
  for (std::size_t i = 0; i < kHostEvents; ++i) {
    object[name_of(static_cast<HostEvent>(i))] = overhead.seconds[i];
  }
  return object;
}

HostOverhead host_overhead_from_json(const json::object& object) {
  HostOverhead overhead;
  for (std::size_t i = 0; i < kHostEvents; ++i) {
    overhead.seconds[i] = object.at(name_of(static_cast<HostEvent>(i))).to_number<double>();
  }
  return overhead;
}

}  // namespace dstune
