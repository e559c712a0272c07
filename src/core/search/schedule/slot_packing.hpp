// Which idle workers an experiment gets: as few hosts as possible, the fullest fit first.
#pragma once

#include <vector>

#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

bool contains(const std::vector<int>& ranks, int rank);

/// World ranks of `workers`, in their order.
std::vector<int> ranks_of(const std::vector<Worker>& workers);

/// `workers` but those of `ranks`.
std::vector<Worker> without(const std::vector<Worker>& workers, const std::vector<int>& ranks);

/// Different hosts of `workers`.
int count_hosts(const std::vector<Worker>& workers);

/// Hosts that `ranks` of `workers` must span at least; 0 if there are too few workers.
int fewest_hosts(const std::vector<Worker>& workers, int ranks);

/// `ranks` of the `idle` workers, sorted by host, then rank; empty if there are too few. They span
/// as few hosts as possible: the one host whose idle workers fit best, or else the hosts with the
/// most idle workers and for the rest the host that fits best. Equal hosts: the first.
///
/// @param idle   sorted by host, then rank, as WorkerPool::idle() gives it
/// @param avoid  world ranks that are taken only if there are too few others, or only others on
///               more hosts
std::vector<Worker> choose_slot(const std::vector<Worker>& idle, int ranks,
                                const std::vector<int>& avoid = {});

/// Slots of `ranks` that the idle workers make at once, none spanning more hosts than the first.
int count_slots(std::vector<Worker> idle, int ranks);

}  // namespace dstune
