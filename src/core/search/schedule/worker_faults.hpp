// Whose fault a failure is: the experiment's, or a worker's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/schedule/worker_info.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// "rank 3 on nodeB"
std::string name_of(const FailedTry::Culprit& culprit);

/// World ranks of its culprits.
std::vector<int> culprits_of(const FailedTry& failed);

/// What another try on other workers may tell from the experiment's own fault: an exception on a
/// rank, a rank that ran out of memory below the limit, that lost its device, that died or did not
/// come back. Nothing for wrong sums, which end the run, nor for what every rank agrees on (no
/// room, not finite, a time limit that all of them kept to).
///
/// @param workers  that ran it, in group order
std::optional<FailedTry> find_fault(const Completion& completion,
                                    const std::vector<Worker>& workers);

/// Those culprits of `failed` that are sick: they reported a fault, and without them the experiment
/// ran (`outcome` on `ranks`). A worker that died, is stuck or lost its device is not one: it gets
/// no work anyway, and starts anew with the next run.
std::vector<FailedTry::Culprit> find_sick(const FailedTry& failed, const Outcome& outcome,
                                          const std::vector<int>& ranks);

/// Of an experiment whose `worker` the system ended for want of memory: what its host's workers
/// share, the narrowest of it, is full.
OutOfMemory outcome_of_kill(const WorkerInfo& worker);

}  // namespace dstune
