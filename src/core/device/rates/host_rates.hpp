// What copies to and from a host's memory, and the passes of its cores, cost: measured, or guessed.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/drive/drive_file.hpp"
#include "core/device/host_transfer.hpp"
#include "core/device/operations/work.hpp"

namespace dstune {

/// A copy takes latency + bytes / bytes_per_s.
struct CopyRate {
  Seconds latency = 0;
  double bytes_per_s = 0;

  bool operator==(const CopyRate&) const = default;
};

/// Copies between a memory of the host's and the device, one way.
struct CopyRates {
  CopyRate alone;     ///< while the node's other ranks copy nothing
  CopyRate together;  ///< while all of them copy the same

  bool operator==(const CopyRates&) const = default;
};

struct HostCopyKind {
  Tier tier = Tier::pinned;
  Transfer direction = Transfer::device_to_host;
};

inline constexpr std::array<HostCopyKind, 4> kHostCopies{{
    {Tier::pinned, Transfer::device_to_host},
    {Tier::pinned, Transfer::host_to_device},
    {Tier::pageable, Transfer::device_to_host},
    {Tier::pageable, Transfer::host_to_device},
}};

/// A pass over the host's memory, of all ranks of a node at once.
struct HostPassRate {
  int threads = 1;         ///< of a rank
  double bytes_per_s = 0;  ///< of a rank, read and written

  bool operator==(const HostPassRate&) const = default;
};

/// A drive's, one way.
struct DriveRate {
  Seconds latency = 0;
  double bytes_per_s = 0;  ///< of a rank, while all ranks of its node do the same

  bool operator==(const DriveRate&) const = default;
};

/// By default guesses for a GPU behind PCIe 4 x16, one of four on a socket with 100 GB/s of memory
/// and a drive that reads 3 GB/s and writes 1.5.
struct HostRates {
  /// In the order of kHostCopies.
  std::array<CopyRates, kHostCopies.size()> copies{{
      {{10e-6, 24e9}, {10e-6, 24e9}},
      {{10e-6, 24e9}, {10e-6, 24e9}},
      {{10e-6, 12e9}, {10e-6, 12e9}},
      {{10e-6, 12e9}, {10e-6, 12e9}},
  }};
  /// The sum of both directions, pinned, on two streams and by all ranks; 0: not known.
  double both_ways_bytes_per_s = 0;
  /// Adam's, by threads, of which the first has one; at least one.
  std::vector<HostPassRate> passes = {{1, 25e9}};
  int threads = 1;                            ///< with which passes run
  DriveRate drive_read = {100e-6, 0.75e9};    ///< always guessed
  DriveRate drive_write = {100e-6, 0.375e9};  ///< the same

  CopyRates& at(Tier tier, Transfer direction) { return copies[index_of(tier, direction)]; }
  const CopyRates& at(Tier tier, Transfer direction) const {
    return copies[index_of(tier, direction)];
  }

  /// All ranks of a node copy at once, as in a step.
  Seconds time_of(const HostTransfer& copy) const;
  Seconds time_of(const DriveTransfer& transfer) const;
  Seconds time_of_pass(const Work& work) const;
  /// The bytes per second of a pass with so many threads: min(threads * that of one, the most of
  /// all), but as measured where these were measured.
  double pass_bytes_per_s(int with_threads) const;

  bool operator==(const HostRates&) const = default;

 private:
  static std::size_t index_of(Tier tier, Transfer direction) {
    return (tier == Tier::pinned ? 0U : 2U) + (direction == Transfer::device_to_host ? 0U : 1U);
  }
};

/// For people: "pinned 21.9 GB/s to the host and 23.0 to the device (alone 25.0 and 25.1), pageable
/// ..., both ways at once 40.1; Adam 9.0 GB/s with 1 thread, 31.2 with 4".
std::string describe(const HostRates& rates);

/// {"version": 1, "threads": 4, "pinned_to_host": {"alone": {...}, "together": {...}}, ...}
json::object to_json(const HostRates& rates);
/// Inverse of to_json, exact; none if another version wrote it.
/// @throws std::exception  if `object` is none
std::optional<HostRates> host_rates_from_json(const json::object& object);

}  // namespace dstune
