// How much of a core a rank had for its work, and how fast its hardware was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// The core use of one rank in one experiment.
struct CoreUse {
  /// Wall time of the rank's own work in all steps, without its waits in collectives; 0 where a
  /// device works beside the host.
  Seconds wanted = 0;
  /// Processor time of the rank's thread in all steps, at most `wanted`. Less than `wanted` means
  /// that the core is shared, or held back by a limit.
  Seconds had = 0;
  /// How often a fixed piece of work can be done per second of processor time; on a GPU the FLOP/s
  /// of DevicePeaks; 0: not known.
  double probe_per_s = 0;
  std::string probe = {};  ///< the name of that work; only equal probes can be compared
  /// The pages that the kernel gave the rank's thread within a step, each of them zeroed: the
  /// median of all steps; 0 where a device works beside the host.
  std::int64_t page_faults = 0;

  bool operator==(const CoreUse&) const = default;
};

/// The part of its work's time in which the rank had a core; 1 where that is not known.
double core_share(const CoreUse& use);

/// [{"wanted_s": 1.2, "had_s": 0.3, "probe_per_s": 4100, "probe": "integers",
/// "page_faults": 0}, ...], by rank of the group.
json::array to_json(const std::vector<CoreUse>& ranks);
/// Inverse of to_json, exact. @throws std::exception  if `array` is no such list
std::vector<CoreUse> core_uses_from_json(const json::array& array);

}  // namespace dstune
