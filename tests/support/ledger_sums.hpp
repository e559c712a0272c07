// Sums over the lines of a ledger.
#pragma once

#include <cstdint>
#include <utility>

#include "core/device/ledger/ledger.hpp"

namespace dstune::test {

using Copies = std::pair<std::uint64_t, Bytes>;  ///< calls and bytes

/// The copies for a purpose in a direction.
inline Copies copies(const Ledger& ledger, TransferPurpose purpose, Transfer direction) {
  Copies sum;
  for (const TransferLine& line : ledger.transfers()) {
    if (line.purpose != purpose || line.transfer != direction) continue;
    sum.first += line.calls;
    sum.second += line.bytes;
  }
  return sum;
}

/// How often the host waits for a reason.
inline std::uint64_t waits(const Ledger& ledger, HostSync reason) {
  std::uint64_t calls = 0;
  for (const SyncLine& line : ledger.syncs()) calls += line.reason == reason ? line.calls : 0;
  return calls;
}

}  // namespace dstune::test
