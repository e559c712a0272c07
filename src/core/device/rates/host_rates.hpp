// What copies to and from a host's memory, and its own passes, are taken to cost where nothing
// measures them.
#pragma once

#include "core/base/units.hpp"
#include "core/device/host_transfer.hpp"
#include "core/device/operations/work.hpp"

namespace dstune {

/// Guesses for a GPU behind PCIe 4 x16, one of four on a socket with 100 GB/s of memory.
struct HostRates {
  double pinned_bytes_per_s = 24e9;
  double pageable_bytes_per_s = 12e9;
  double memory_bytes_per_s = 25e9;  ///< read and written by the host's cores, per rank
  Seconds copy_latency = 10e-6;

  Seconds time_of(const HostTransfer& copy) const {
    const double rate = copy.tier == Tier::pinned ? pinned_bytes_per_s : pageable_bytes_per_s;
    return copy_latency + static_cast<double>(copy.from.size()) / rate;
  }
  Seconds time_of_pass(const Work& work) const {
    return static_cast<double>(work.read_bytes() + work.written_bytes()) / memory_bytes_per_s;
  }
};

}  // namespace dstune
