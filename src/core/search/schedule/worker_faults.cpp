#include "core/search/schedule/worker_faults.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/schedule/slot_packing.hpp"

namespace dstune {
namespace {

/// Memory was short although the limit was not reached: the machine's, not the experiment's.
bool is_below_limit(const OutOfMemory& fault) {
  return fault.requested > 0 && fault.requested <= fault.limit &&
         std::max(fault.in_use, fault.reserved) <= fault.limit - fault.requested;
}

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
  const bool sizeless = reported && fault.requested == 0;  // outside the device's memory
  if (!sizeless && !is_below_limit(fault)) return std::nullopt;
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

}  // namespace dstune
