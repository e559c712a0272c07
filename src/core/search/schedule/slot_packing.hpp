// Chooses the idle workers for an experiment: on as few hosts as possible, with the tightest fit
// first.
#pragma once

#include <vector>

#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

bool contains(const std::vector<int>& ranks, int rank);

/// The world ranks of `workers`, in their order.
std::vector<int> ranks_of(const std::vector<Worker>& workers);

/// The `workers` that are not among `ranks`.
std::vector<Worker> without(const std::vector<Worker>& workers, const std::vector<int>& ranks);

/// The number of different hosts of `workers`.
int count_hosts(const std::vector<Worker>& workers);

/// The least number of hosts that `ranks` of `workers` can span; 0 if there are too few workers.
int fewest_hosts(const std::vector<Worker>& workers, int ranks);

/// `ranks` of the `idle` workers, sorted by host, then rank; empty if there are too few. They span
/// as few hosts as possible: the one host whose idle workers fit best, or else the hosts with the
/// most idle workers and, for the rest, the host that fits best. Of equal hosts the first is
/// chosen.
///
/// @param idle   sorted by host, then rank, as WorkerPool::idle() gives it
/// @param avoid  world ranks that are taken only if there are too few others, or only others on
///               more hosts
std::vector<Worker> choose_slot(const std::vector<Worker>& idle, int ranks,
                                const std::vector<int>& avoid = {});

/// World ranks that are better avoided, by why.
struct Doubts {
  std::vector<int> tried;     ///< those on which the experiment failed
  std::vector<int> own;       ///< culprits of that failure
  std::vector<int> suspects;  ///< culprits of any failure that is not settled, its own among them
  std::vector<int> slow;
};

struct Slot {
  std::vector<Worker> workers;  ///< empty: there are too few
  /// What the slot admits. 0: no worker that is slow or under suspicion, 1: none under suspicion,
  /// 2: none of its own culprits, 3: any worker.
  int concessions = 0;
};

/// The slot of `ranks` of the workers `from` that needs the fewest concessions, but for a slow
/// worker, which is taken rather than one more host. @param from  sorted as for choose_slot()
Slot choose_trusted_slot(const std::vector<Worker>& from, int ranks, const Doubts& doubts);

/// The number of slots of `ranks` that the idle workers make at once, none of which spans more
/// hosts than the first.
int count_slots(std::vector<Worker> idle, int ranks);

}  // namespace dstune
