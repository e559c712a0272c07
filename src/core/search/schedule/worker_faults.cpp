#include "core/search/schedule/worker_faults.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/schedule/slot_packing.hpp"

namespace dstune {
namespace {

std::vector<FailedTry::Culprit> choose(const std::vector<Worker>& workers,
                                       const std::vector<int>& ranks) {
  std::vector<FailedTry::Culprit> chosen;
  for (const auto& worker : workers) {
    if (contains(ranks, worker.rank)) chosen.push_back({worker.rank, worker.host});
  }
  return chosen;
}

std::optional<FailedTry> find_fault(const OutOfMemory& fault, const std::vector<Worker>& workers,
                                    const std::vector<int>& culprits) {
  const bool reported = !culprits.empty();
  // No rank reported the fault and no request is known: the system ended the rank for want of host
  // memory.
  if (!reported && fault.requested == 0) return std::nullopt;
  // All workers of a node have its drive, which others may have filled.
  if (!is_machines(fault) || fault.tier == Tier::nvme) return std::nullopt;
  auto short_of_memory = choose(workers, reported ? culprits : std::vector<int>{fault.rank});
  if (short_of_memory.empty()) return std::nullopt;
  return FailedTry{ranks_of(workers), std::move(short_of_memory), true, describe(fault)};
}

std::optional<FailedTry> find_fault(const Failed& failed, const std::vector<Worker>& workers,
                                    const std::vector<int>& culprits) {
  const bool lost = failed.kind == FailureKind::worker_lost;
  if (culprits.empty() && !lost) return std::nullopt;
  if (failed.kind == FailureKind::wrong_sums) return std::nullopt;
  const bool answered = failed.kind == FailureKind::error;
  return FailedTry{ranks_of(workers), choose(workers, culprits), answered, failed.reason};
}

}  // namespace

std::string name_of(const FailedTry::Culprit& culprit) {
  return concat("rank ", culprit.rank, " on ", culprit.host);
}

std::vector<int> culprits_of(const FailedTry& failed) {
  std::vector<int> ranks;
  for (const auto& culprit : failed.culprits) ranks.push_back(culprit.rank);
  return ranks;
}

std::optional<FailedTry> find_fault(const Completion& completion,
                                    const std::vector<Worker>& workers) {
  if (const auto* fault = std::get_if<OutOfMemory>(&completion.outcome)) {
    return find_fault(*fault, workers, completion.culprits);
  }
  if (const auto* failed = std::get_if<Failed>(&completion.outcome)) {
    return find_fault(*failed, workers, completion.culprits);
  }
  return std::nullopt;
}

std::vector<FailedTry::Culprit> find_sick(const FailedTry& failed, const Outcome& outcome,
                                          const std::vector<int>& ranks) {
  if (!failed.answered || !std::holds_alternative<Measured>(outcome)) return {};
  std::vector<FailedTry::Culprit> sick;
  std::copy_if(failed.culprits.begin(), failed.culprits.end(), std::back_inserter(sick),
               [&](const auto& culprit) { return !contains(ranks, culprit.rank); });
  return sick;
}

OutOfMemory outcome_of_kill(const WorkerInfo& worker) {
  std::string name = "its host";
  Bytes bytes = 0;
  for (const DeviceInfo& device : worker.devices) {
    if (!device.is_shared) continue;
    bytes = device.memory;
    for (const MemoryBound& bound : device.bounds) {
      if (bound.id.empty() || bound.bytes >= bytes) continue;
      name = bound.name;
      bytes = bound.bytes;
    }
  }
  return {worker.rank,
          {},
          0,
          bytes,
          bytes,
          0,
          concat("the system's out-of-memory killer ended it: ", name, " has ", format_bytes(bytes),
                 ", and all of it was in use")};
}

}  // namespace dstune
