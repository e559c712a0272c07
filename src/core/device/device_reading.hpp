// A device's reading of its own state.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dstune {

/// One moment of one device; what it does not say is absent.
struct DeviceReading {
  std::optional<double> sm_clock_mhz;      ///< of the arithmetic units
  std::optional<double> max_sm_clock_mhz;  ///< the most it can be
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> energy_j;             ///< since an arbitrary start
  std::vector<std::string> throttle_reasons;  ///< in words: "power cap"; none: full speed
  /// Seconds in which something held it back since an arbitrary start, in words as above. At the
  /// moment of a reading the device may have become idle.
  std::map<std::string, double> throttle_times;
  std::optional<int> other_processes;  ///< that compute on it too

  bool operator==(const DeviceReading&) const = default;
};

}  // namespace dstune
