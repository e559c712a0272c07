// What happens between host and device in a phase of a step: as a row of the offload fixture has
// it, and as a ledger does.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/json.hpp"
#include "core/device/dtype.hpp"
#include "core/device/ledger/ledger.hpp"

namespace dstune::test {

/// All of it can be compared, since both sides have the ledger's names.
struct OffloadPhase {
  /// Stream, purpose, direction, tier of the host's side, and whether the host waits by request.
  using Kind = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  using CallsAndBytes = std::pair<std::uint64_t, Bytes>;

  /// Norms and flags are "scalar". Each that the host reads is a copy too, on stream "any".
  std::map<Kind, CallsAndBytes> copies;
  std::map<std::string, std::uint64_t> waits;   ///< of the host, by HostSync
  std::map<std::string, CallsAndBytes> passes;  ///< of the host, by MemoryPass
  /// Reads and writes of a drive, by "read" or "write" and purpose.
  std::map<std::string, CallsAndBytes> drive;

  bool operator==(const OffloadPhase&) const = default;
};

std::ostream& operator<<(std::ostream& out, const OffloadPhase& phase);

OffloadPhase phase_of(const Ledger& ledger);

/// @param phase  one of a row's phases
/// @param dtype  the row's model type
OffloadPhase recorded_phase(const json::object& phase, DType dtype);

/// What a list of a row's reads and writes of a drive comes to, as OffloadPhase::drive.
std::map<std::string, OffloadPhase::CallsAndBytes> recorded_drive(const json::array& lines);

/// Without norms and flags, and without the waits for them.
OffloadPhase without_numbers(OffloadPhase phase);

/// They are equal but for the search for inf and NaN, which here is another kernel that moves the
/// same bytes, less the last one of an odd number.
void expect_same(OffloadPhase ours, OffloadPhase recorded);

/// The phases of a step are those that a row has for it. A phase that the row leaves out is empty.
/// @param ours          ledgers by the names of the phases
/// @param recorded      a row's phases
/// @param with_numbers  false: norms and flags are not compared
void expect_same_step(const std::map<std::string, Ledger>& ours, const json::object& recorded,
                      DType dtype, bool with_numbers = true);

}  // namespace dstune::test
