// How fast a machine is, as the physics of a step needs it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/collective_kind.hpp"
#include "core/device/operations/work.hpp"

namespace dstune {

/// Of the product (rows, inner) (inner, cols).
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t inner = 0;

  bool operator==(const MatrixShape&) const = default;
};

struct MatrixRate {
  MatrixShape shape;
  double flops_per_s = 0;

  bool operator==(const MatrixRate&) const = default;
};

/// A call takes steps * latency + wire_bytes() / bytes_per_s, where an all-reduce of N ranks has
/// 2 (N-1) steps and every other kind N-1.
struct CollectiveRate {
  Seconds latency = 0;
  double bytes_per_s = 0;

  bool operator==(const CollectiveRate&) const = default;
};

/// Only their proportions matter once something has been learnt.
struct MachineRates {
  bool overlaps = false;        ///< streams run beside each other
  double flops_per_s = 0;       ///< of products that `matrices` does not know, and of all else
  double copy_bytes_per_s = 0;  ///< read and written
  Seconds launch = 0;           ///< fixed time of an operation
  std::vector<MatrixRate> matrices = {};  ///< measured; none: flops_per_s
  std::array<CollectiveRate, kCollectiveKinds> collectives{};

  CollectiveRate& at(CollectiveKind kind) { return collectives[static_cast<std::size_t>(kind)]; }
  const CollectiveRate& at(CollectiveKind kind) const {
    return collectives[static_cast<std::size_t>(kind)];
  }
  bool operator==(const MachineRates&) const = default;
};

/// Of the measured product that is most alike, or flops_per_s.
/// @param product  work_of() a matrix product
double rate_of(const MachineRates& rates, const Work& product);

/// Steps of a ring of `ranks` ranks.
int ring_steps(CollectiveKind kind, int ranks);

/// Of the ranks of a group, at least one: the slowest of each. A product that a rank has not
/// measured is left out.
MachineRates merge(const std::vector<MachineRates>& ranks);

/// {"overlaps": false, "flops_per_s": 5e10, ..., "collectives": {"all_reduce": {...}, ...}}
json::object to_json(const MachineRates& rates);
/// Inverse of to_json, exact. @throws std::exception if `object` is none
MachineRates machine_rates_from_json(const json::object& object);

}  // namespace dstune
