#include "core/device/host_overhead.hpp"

#include <algorithm>

#include "core/base/json.hpp"

namespace dstune {

namespace {

struct Preset {
  std::string_view name;
  HostOverhead overhead;  ///< in the order of HostEvent
};

constexpr std::array kPresets = {
    Preset{kEstimatedOverhead, {{50e-6, 150e-6, 60e-6, 60e-6, 20e-6}}},
    Preset{kGlooOverhead, {{160e-6, 450e-6, 3000e-6, 200e-6, 20e-6}}},
    Preset{kNoOverhead, {}},
};

}  // namespace

std::string_view name_of(HostEvent event) {
  constexpr std::array<std::string_view, kHostEvents> kNames = {
      "gradient_hook", "module_hook", "collective", "optimizer_tensor", "synchronization"};
  return kNames[static_cast<std::size_t>(event)];
}

std::optional<HostOverhead> host_overhead_preset(std::string_view name) {
  const auto* const found = std::find_if(kPresets.begin(), kPresets.end(),
                                         [&](const Preset& preset) { return preset.name == name; });
  if (found == kPresets.end()) return std::nullopt;
  return found->overhead;
}

std::vector<std::string> host_overhead_presets() {
  std::vector<std::string> names;
  names.reserve(kPresets.size());
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::string_view preset_of(const HostOverhead& overhead) {
  const auto* const found =
      std::find_if(kPresets.begin(), kPresets.end(),
                   [&](const Preset& preset) { return preset.overhead == overhead; });
  return found == kPresets.end() ? std::string_view() : found->name;
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
