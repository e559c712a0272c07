// What real DeepSpeed's host code costs and C++ does not have: Python hooks, launches, waits.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// A place in the step at which DeepSpeed's host code spends time of its own.
enum class HostEvent {
  gradient_hook,  ///< ZeRO's handling of one gradient: stage 1 at the boundary, 2 and 3 always
  module_hook,    ///< stage 3: before and after each module with parameters, forward and backward
  collective,     ///< launch of a collective
  optimizer_tensor,  ///< one tensor, or this rank's part of it, in the optimizer step
  synchronization,   ///< a wait for the device, beside the waiting; not stage 3's for parameters
};

constexpr std::size_t kHostEvents = 5;

std::string_view name_of(HostEvent event);

/// Seconds of busy host time per event. All 0: none is spent, events are still counted.
struct HostOverhead {
  std::array<Seconds, kHostEvents> seconds{};

  Seconds& at(HostEvent event) { return seconds[static_cast<std::size_t>(event)]; }
  Seconds at(HostEvent event) const { return seconds[static_cast<std::size_t>(event)]; }
  bool operator==(const HostOverhead&) const = default;
};

/// The preset of a backend that has none of its own: orders of magnitude, not measurements.
constexpr std::string_view kEstimatedOverhead = "gpu-estimate";
/// The preset of DeepSpeed's CPU accelerator, whose collectives are gloo's: measured once.
constexpr std::string_view kGlooOverhead = "cpu-gloo";

constexpr std::string_view kNoOverhead = "none";

/// What ships with dstune-mpi and is not a measurement of anybody's machine (docs/host-overhead.md
/// has the sources): "gpu-estimate", "cpu-gloo", and "none", all 0. Nothing for another name.
std::optional<HostOverhead> host_overhead_preset(std::string_view name);
std::vector<std::string> host_overhead_presets();

/// Which of them `overhead` is, or "" for a profile.
std::string_view preset_of(const HostOverhead& overhead);

/// Seconds by the events' names, exact both ways.
json::object to_json(const HostOverhead& overhead);
/// @throws std::exception  if `object` is none
HostOverhead host_overhead_from_json(const json::object& object);

}  // namespace dstune
