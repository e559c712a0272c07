// How fast a machine is, as the physics of a step needs it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/dtype.hpp"
#include "core/device/ledger/collective_kind.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/rates/host_rates.hpp"

namespace dstune {

/// The shape of the product (rows, inner) (inner, cols).
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

/// A call takes steps * latency + wire_bytes() / bytes_per_s. An all-reduce of N ranks has 2 (N-1)
/// steps, and every other kind N-1.
struct CollectiveRate {
  Seconds latency = 0;
  double bytes_per_s = 0;

  bool operator==(const CollectiveRate&) const = default;
};

/// A kind of collective, of one type, in one kind of group: `ranks` ranks, of which neighbours are
/// `spacing` apart.
struct GroupMessage {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::fp32;
  int ranks = 1;
  int spacing = 1;

  bool operator==(const GroupMessage&) const = default;
};

struct MessageRate {
  GroupMessage message;
  CollectiveRate rate;

  bool operator==(const MessageRate&) const = default;
};

/// The rates of a machine. Once something has been learnt, only their proportions matter.
struct MachineRates {
  bool overlaps = false;                  ///< whether streams run beside each other
  double flops_per_s = 0;                 ///< for products that `matrices` lacks, and all else
  double copy_bytes_per_s = 0;            ///< bytes read and written
  Seconds launch = 0;                     ///< the fixed time of an operation
  std::vector<MatrixRate> matrices = {};  ///< measured products; none: flops_per_s
  std::array<CollectiveRate, kCollectiveKinds> collectives{};  ///< for the whole group, in `dtype`
  std::vector<MessageRate> messages = {};  ///< for other types, or parts of the group
  DType dtype = DType::fp32;               ///< the type of products and passes
  std::optional<HostRates> host = {};      ///< none: not measured

  CollectiveRate& at(CollectiveKind kind) { return collectives[static_cast<std::size_t>(kind)]; }
  const CollectiveRate& at(CollectiveKind kind) const {
    return collectives[static_cast<std::size_t>(kind)];
  }
  bool operator==(const MachineRates&) const = default;
};

/// The rate of the measured product that is most alike. Between two products it is interpolated by
/// the logarithms of shapes; without products it is flops_per_s.
/// @param product  work_of() a matrix product
double rate_of(const MachineRates& rates, const Work& product);

/// The rate of this message. If there is none, that of another type in such a group, or else that
/// of the whole group.
const CollectiveRate& rate_of(const MachineRates& rates, const GroupMessage& message);

/// The distance between neighbours in a part of a group, all of which are equally far apart.
inline int spacing_of(const std::vector<int>& ranks) {
  return ranks.size() < 2 ? 1 : ranks[1] - ranks[0];
}

/// The number of steps of a ring of `ranks` ranks.
int ring_steps(CollectiveKind kind, int ranks);

/// The slowest rates among the ranks of a group, of which there is at least one. A product or
/// message that some rank has not measured is left out. The host's rates are those of the ranks
/// that have measured them.
MachineRates merge(const std::vector<MachineRates>& ranks);
/// The rates of several groups, any of which may run an experiment: the geometric mean of each
/// rate.
MachineRates typical(const std::vector<MachineRates>& groups);

/// {"overlaps": false, "flops_per_s": 5e10, ..., "collectives": {"all_reduce": {...}, ...}}
json::object to_json(const MachineRates& rates);
/// Inverse of to_json, exact; what earlier versions wrote has neither messages, nor a type, nor the
/// host's rates.
/// @throws std::exception  if `object` is none
MachineRates machine_rates_from_json(const json::object& object);

/// {"kind": "all_gather", "dtype": "int8", "ranks": 2, "spacing": 1}
json::object to_json(const GroupMessage& message);
GroupMessage group_message_from_json(const json::object& object);  ///< inverse

}  // namespace dstune
