// Host files of Open MPI and DeepSpeed: which hosts, and how many ranks each takes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dstune {

struct HostSlots {
  std::string host;
  int slots = 1;

  bool operator==(const HostSlots&) const = default;
};

struct Hostfile {
  std::string source;            ///< its path, for messages
  std::vector<HostSlots> hosts;  ///< each once, in the order of the file

  int total_slots() const;

  /// Ranks that run experiments: all but rank 0, which tunes.
  /// @throws ConfigError  if there are fewer than 2 slots
  int workers() const;

  /// Workers of the host that has most; rank 0 takes a slot of the first.
  int workers_on_largest_host() const;
};

/// One host a line: "host slots=9", Open MPI's max_slots (an upper bound, only checked) and bare
/// "host" (one slot), DeepSpeed's "host slots=8", "host:8", and Slurm's "node[01-04,07] slots=8",
/// where each host has the slots. Lines of the same host add up; '#' starts a comment; IPv6
/// addresses and user@host (the user is dropped) are hosts as well.
///
/// @throws ConfigError  with every wrong line, or if there is no host
Hostfile parse_hostfile(std::string_view text, const std::string& source);

/// @param path  "-": standard input
/// @throws ConfigError  as parse_hostfile, and if the file cannot be read
Hostfile read_hostfile(const std::filesystem::path& path);

}  // namespace dstune
