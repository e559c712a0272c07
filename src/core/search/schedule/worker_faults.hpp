// Decides whose fault a failure is: the experiment's, or a worker's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/search/schedule/worker_info.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// The culprit as messages name it: "rank 3 on nodeB".
std::string name_of(const FailedTry::Culprit& culprit);

/// The world ranks of the try's culprits.
std::vector<int> culprits_of(const FailedTry& failed);

/// A failure that may be a worker's fault, which a try on other workers can show: an exception on a
/// rank, or a rank that ran out of memory below the limit, lost its device, died or did not come
/// back. None for wrong sums, which end the run, and for failures in which all ranks agree (too
/// little memory, a loss that is not finite, a time limit after which all of them came back).
///
/// @param workers  those that ran it, in the order of the group
std::optional<FailedTry> find_fault(const Completion& completion,
                                    const std::vector<Worker>& workers);

/// The culprits of `failed` that are sick: they reported a fault, and the experiment ran without
/// them (`outcome` on `ranks`). A worker that died, is stuck or lost its device does not count as
/// sick: it gets no work anyway, and starts anew with the next run.
std::vector<FailedTry::Culprit> find_sick(const FailedTry& failed, const Outcome& outcome,
                                          const std::vector<int>& ranks);

/// The outcome of an experiment whose `worker` the system ended for want of memory: the narrowest
/// bound on the host's memory that its workers share is full.
OutOfMemory outcome_of_kill(const WorkerInfo& worker);

}  // namespace dstune
