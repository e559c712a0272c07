// The clocks, temperature, power and throttling of an experiment's devices, where they report them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/device_reading.hpp"

namespace dstune {

/// The use of one device, or of all devices of a group, over the measured steps. A value that a
/// device does not report is absent.
struct DeviceUse {
  /// The mean of the device whose clock has the smallest share of its maximum.
  std::optional<double> sm_clock_mhz = std::nullopt;
  std::optional<double> max_sm_clock_mhz = std::nullopt;  ///< the maximum of that device
  std::optional<double> temperature_c = std::nullopt;     ///< the hottest device's
  std::optional<double> power_w = std::nullopt;           ///< mean, of all devices together
  std::optional<double> energy_per_step_j =
      std::nullopt;                                ///< per optimizer step, of all devices together
  std::vector<std::string> throttle_reasons = {};  ///< those of any device
  int other_processes = 0;                         ///< the largest number on one device

  /// The clock's share of its maximum, 0 to 1; absent if the clock or its maximum is absent.
  std::optional<double> sm_clock_share() const;

  bool operator==(const DeviceUse&) const = default;
};

/// The use of a device between two readings, which are `time` seconds and `steps` optimizer steps
/// apart; none if either reading is. Power is the energy divided by the time where the device
/// counts energy, else the mean of both readings.
std::optional<DeviceUse> make_device_use(const std::optional<DeviceReading>& before,
                                         const std::optional<DeviceReading>& after, Seconds time,
                                         double steps);

/// The use of all ranks of a group together; none if no device reports anything. A sum is absent if
/// one of its terms is.
std::optional<DeviceUse> merge(const std::vector<std::optional<DeviceUse>>& ranks);

/// {"sm_clock_mhz": 1410, ...}; an absent value has no key.
json::object to_json(const DeviceUse& use);
/// Inverse of to_json, exact. @throws std::exception  if `object` is no DeviceUse
DeviceUse device_use_from_json(const json::object& object);

/// "power cap: SM clock 1410 of 1980 MHz (71 %), 83 C, 612 W", or "" if nothing held it back.
std::string throttle_text(const DeviceUse& use);

}  // namespace dstune
