#include "core/search/schedule/slot_packing.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace dstune {
namespace {

using Hosts = std::map<std::string, std::vector<Worker>>;

Hosts by_host(const std::vector<Worker>& workers) {
  Hosts hosts;
  for (const auto& worker : workers) hosts[worker.host].push_back(worker);
  return hosts;
}

/// The host with the fewest workers that still has `ranks` of them; end() if none has.
Hosts::iterator best_fit(Hosts& hosts, std::size_t ranks) {
  auto best = hosts.end();
  for (auto host = hosts.begin(); host != hosts.end(); ++host) {
    if (host->second.size() < ranks) continue;
    if (best == hosts.end() || host->second.size() < best->second.size()) best = host;
  }
  return best;
}

Hosts::iterator largest(Hosts& hosts) {
  return std::max_element(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
}

/// Chooses like choose_slot(), but puts the workers of `last` behind the others of their host.
std::vector<Worker> pack(const std::vector<Worker>& idle, int ranks, const std::vector<int>& last) {
  auto missing = static_cast<std::size_t>(ranks);
  if (idle.size() < missing) return {};
  Hosts hosts = by_host(idle);
  std::vector<Worker> slot;
  while (missing > 0) {
    const auto fit = best_fit(hosts, missing);
    const auto host = fit == hosts.end() ? largest(hosts) : fit;
    auto& workers = host->second;
    std::stable_partition(workers.begin(), workers.end(),
                          [&](const Worker& worker) { return !contains(last, worker.rank); });
    const auto taken = std::min(missing, workers.size());
    slot.insert(slot.end(), workers.begin(), workers.begin() + static_cast<std::ptrdiff_t>(taken));
    missing -= taken;
    hosts.erase(host);
  }
  std::sort(slot.begin(), slot.end(), [](const Worker& a, const Worker& b) {
    return a.host != b.host ? a.host < b.host : a.rank < b.rank;
  });
  return slot;
}

}  // namespace

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::vector<Worker> without(const std::vector<Worker>& workers, const std::vector<int>& ranks) {
  std::vector<Worker> rest;
  std::copy_if(workers.begin(), workers.end(), std::back_inserter(rest),
               [&](const Worker& worker) { return !contains(ranks, worker.rank); });
  return rest;
}

int count_hosts(const std::vector<Worker>& workers) {
  return static_cast<int>(by_host(workers).size());
}

std::vector<int> ranks_of(const std::vector<Worker>& workers) {
  std::vector<int> ranks(workers.size());
  std::transform(workers.begin(), workers.end(), ranks.begin(),
                 [](const Worker& worker) { return worker.rank; });
  return ranks;
}

int fewest_hosts(const std::vector<Worker>& workers, int ranks) {
  return count_hosts(choose_slot(workers, ranks));
}

std::vector<Worker> choose_slot(const std::vector<Worker>& idle, int ranks,
                                const std::vector<int>& avoid) {
  auto any = pack(idle, ranks, avoid);
  if (avoid.empty()) return any;
  auto others = pack(without(idle, avoid), ranks, {});
  return others.empty() || count_hosts(others) > count_hosts(any) ? any : others;
}

Slot choose_trusted_slot(const std::vector<Worker>& from, int ranks, const Doubts& doubts) {
  std::vector<int> slow = doubts.suspects;
  slow.insert(slow.end(), doubts.slow.begin(), doubts.slow.end());
  const auto choose = [&](const std::vector<int>& avoid) {
    return choose_slot(without(from, avoid), ranks, doubts.tried);
  };
  auto trusted = choose(doubts.suspects);
  auto fast = choose(slow);
  // A slow worker disturbs a measurement less than a network between hosts does, so that fast
  // workers must not span more hosts.
  if (!fast.empty() && count_hosts(fast) <= count_hosts(trusted)) return {std::move(fast), 0};
  Slot slot{std::move(trusted), 1};
  for (const auto& avoid : {doubts.own, std::vector<int>()}) {
    if (!slot.workers.empty()) break;
    slot = {choose(avoid), slot.concessions + 1};
  }
  return slot;
}

int count_slots(std::vector<Worker> idle, int ranks) {
  const int hosts = fewest_hosts(idle, ranks);
  int count = 0;
  for (;;) {
    const auto slot = choose_slot(idle, ranks);
    if (slot.empty() || count_hosts(slot) > hosts) return count;
    idle = without(idle, ranks_of(slot));
    ++count;
  }
}

}  // namespace dstune
