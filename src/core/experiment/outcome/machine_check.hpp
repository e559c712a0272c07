// What each rank and each pair of ranks of a group could do when the machine was checked.
#pragma once

#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/device/rates/machine_rates.hpp"

namespace dstune {

struct RankCheck {
  double flops_per_s = 0;       ///< of a square matrix product in the type of the step
  double copy_bytes_per_s = 0;  ///< of a copy; bytes are those read and those written
  /// How much longer a fixed piece of work takes in the mean than at its best: 0.02.
  double jitter = 0;

  bool operator==(const RankCheck&) const = default;
};

struct PairCheck {
  int first = 0;   ///< group rank
  int second = 0;  ///< group rank, larger than `first`
  /// latency: the time in which each has one number of the other; bytes_per_s: the bytes that each
  /// gets of the other, both ways at once, while the other pairs of the round do the same.
  CollectiveRate rate = {};

  bool operator==(const PairCheck&) const = default;
};

struct MachineCheck {
  std::vector<RankCheck> ranks;  ///< by group rank
  std::vector<PairCheck> pairs;
  /// latency: the time of the whole group's sum of one number; bytes_per_s: the bytes that it sums
  /// per second.
  CollectiveRate ring = {};

  bool operator==(const MachineCheck&) const = default;
};

/// {"ranks": [[flops_per_s, copy_bytes_per_s, jitter], ...],
///  "pairs": [[first, second, latency_s, bytes_per_s], ...], "ring": [latency_s, bytes_per_s]}
json::object to_json(const MachineCheck& check);
/// Inverse of to_json, exact. @throws std::exception  if `object` is no check
MachineCheck machine_check_from_json(const json::object& object);

}  // namespace dstune
