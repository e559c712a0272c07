// A profile: a JSON file of what DeepSpeed's host code and its library cost on a machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/device/host_overhead.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Where a profile comes from, as it says itself: "" and 0 where it does not.
struct MeasuredOn {
  std::string host;
  std::string processor;
  int ranks = 0;
  std::string deepspeed;  ///< versions
  std::string torch;
  std::string transformers;
  std::string backend;        ///< "cpu", "cuda"; or as communication
  std::string communication;  ///< of torch.distributed: "gloo", "nccl"
  std::string date;           ///< "2026-11-23"

  bool operator==(const MeasuredOn&) const = default;
};

struct HostProfile {
  HostOverhead overhead;  ///< with its origin: `path`, and what it was measured on
  MeasuredOn measured_on;
};

/// Reads what scripts/tune.sh --calibrate writes: microseconds per event, and as far as they
/// are there uncertainties, collectives and where it was measured (docs/host-overhead.md). Either
/// all numbers have an uncertainty, or none has: then kAssumedSpread is theirs.
/// @returns none, and all faults in `problems`, whose source is the file, if there is one
std::optional<HostProfile> read_host_profile(const std::filesystem::path& path, Problems& problems);

}  // namespace dstune
