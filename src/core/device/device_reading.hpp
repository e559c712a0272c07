// A device's reading of its own state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dstune {

/// What a device says of itself at one moment; a value that it does not say is absent.
struct DeviceReading {
  std::optional<double> sm_clock_mhz;      ///< clock of the arithmetic units
  std::optional<double> max_sm_clock_mhz;  ///< the highest that it can be
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> energy_j;             ///< since an arbitrary start
  std::vector<std::string> throttle_reasons;  ///< in words: "power cap"; none: full speed
  /// Seconds, since an arbitrary start, in which something held the device back; the keys are words
  /// as above. The device may have become idle by the moment of a reading.
  std::map<std::string, double> throttle_times;
  std::optional<int> other_processes;  ///< number of them that compute on it too

  bool operator==(const DeviceReading&) const = default;
};

}  // namespace dstune
