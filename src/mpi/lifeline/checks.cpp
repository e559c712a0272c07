#include "mpi/lifeline/checks.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include <unistd.h>

#include "core/base/text.hpp"
#include "mpi/base/launcher.hpp"
#include "mpi/base/this_process.hpp"
#include "mpi/base/waiting.hpp"

namespace dstune {

namespace {

namespace fs = std::filesystem;

/// The process ids of the ranks that the launcher started, each from any of its threads.
std::set<int> ranks_of(int launcher) {
  std::set<int> ranks;
  std::error_code ignored;
  const fs::directory_iterator threads(concat("/proc/", launcher, "/task"), ignored);
  for (const auto& thread : threads) {
    std::ifstream children(thread.path() / "children");
    for (int pid = 0; children >> pid;) {
      if (is_rank(pid)) ranks.insert(pid);
    }
  }
  return ranks;
}

}  // namespace

Check deadline(const std::string& phase, Seconds limit, const std::string& advice, int exit_code) {
  Silence passed;
  return [=]() mutable -> std::optional<Departure> {
    passed.listened(steady_now());
    if (passed.length() <= limit) return std::nullopt;
    return Departure{concat(phase, " was not over after ", fixed(limit, 0), " s; ", advice),
                     exit_code};
  };
}

Check launcher_gone(int exit_code) {
  return [parent = getppid(), exit_code]() -> std::optional<Departure> {
    if (getppid() == parent) return std::nullopt;
    return Departure{"what started this rank (mpirun, or its daemon on this host) is gone",
                     exit_code};
  };
}

Check process_gone(int pid, const std::string& name, int exit_code) {
  return [=]() -> std::optional<Departure> {
    if (!vanished(pid)) return std::nullopt;
    return Departure{concat(name, " is gone"), exit_code};
  };
}

Check rank_of_this_host_gone(int exit_code) {
  constexpr Seconds kForkLimit = 5;  // mpirun starts all ranks of a host at once
  std::set<int> seen;
  Silence incomplete;
  return [=, launcher = find_launcher()]() mutable -> std::optional<Departure> {
    if (launcher == 0) return std::nullopt;
    const auto gone = std::find_if(seen.begin(), seen.end(), [](int pid) { return vanished(pid); });
    if (gone != seen.end()) {
      return Departure{concat("a rank on this host (process ", *gone,
                              ") died before all ranks had met; start the run again"),
                       exit_code};
    }
    const bool complete = !seen.empty() && seen.size() >= ranks_of_this_host();
    // This reads a file per rank, so that it ends once all ranks were seen.
    if (!complete) seen.merge(ranks_of(launcher));
    // Not even this rank was seen: /proc does not list children.
    if (seen.empty()) return std::nullopt;
    incomplete.listened(steady_now());
    if (seen.size() >= ranks_of_this_host()) incomplete.broken();
    if (incomplete.length() <= kForkLimit) return std::nullopt;
    return Departure{
        concat("only ", seen.size(), " of the ", ranks_of_this_host(),
               " ranks on this host were seen before all had met; start the run again"),
        exit_code};
  };
}

void end_job() {
  if (const int mpirun = find_mpirun(); mpirun != 0) kill(mpirun, SIGTERM);
}

}  // namespace dstune
