// Measures what copies between a device and its host's memory, and the host's own passes, cost.
#pragma once

#include <optional>

#include "core/device/device.hpp"
#include "core/device/group.hpp"
#include "core/device/rates/host_rates.hpp"

namespace dstune {

struct HostMeasure {
  /// Bytes of the host's memory that a rank may use at a time, and of the device's.
  Bytes memory = Bytes{512} << 20U;
  /// Seconds after which nothing that can be left out is begun: the largest copies, and passes
  /// after the first.
  Seconds time = 0.4;
  int ranks_on_node = 1;  ///< of the group; each copies in its turn, in which the others rest
  int rank_on_node = 0;
  Bytes cache = 0;  ///< the host's last one; 0: not known
};

/// Collective over the group, whose ranks begin each piece together. Times copies of 4 KiB to
/// 16 MiB, as far as `how.memory` and the memories of device and host have room, the same way by
/// all ranks at once, where they are soon enough done of 256 MiB too, and by one of each node after
/// the other. Then Adam on the host with 1, 2, 4 ... device.host_threads() threads, by all ranks at
/// once, on arrays of together four times the last cache or as much as is allowed.
/// @param device  must have nothing queued
/// @returns this rank's view; none on all ranks if one has not even room for copies of 1 MiB
std::optional<HostRates> measure_host_rates(Device& device, Group& group, const HostMeasure& how);

}  // namespace dstune
