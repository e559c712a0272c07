// How rank 0 ends an experiment that its ranks do not end: time limits, ranks that are silent or
// lost.
#include <algorithm>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/schedule/worker_faults.hpp"
#include "mpi/pool/mpi_worker_pool.hpp"

namespace dstune {

namespace {

bool timed_out(const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  return failed != nullptr && failed->kind == FailureKind::timeout;
}

}  // namespace

void MpiWorkerPool::end(Running& running, Outcome&& outcome) {
  running.outcome = std::move(outcome);
  running.give_up_time = now() + options_.abort_grace;
}

// Ends an experiment while its other ranks may be inside a collective that will never be complete.
void MpiWorkerPool::end_early(Running& running, Outcome&& outcome) {
  end(running, std::move(outcome));
  groups_.forget(running.ranks);
  for (const int rank : running.ranks) {
    if (roster_.at(rank).experiment != running.id) continue;
    mailbox_.send(rank, MessageKind::abort, {{"id", running.id}});
  }
  if (running.tag == 0) return;
  for (const int rank : running.ranks) {
    mailbox_.send(rank, MessageKind::forget, {{"tag", running.tag}});
  }
}

bool MpiWorkerPool::is_busy_with(int rank, std::uint64_t id) {
  const WorkerEntry& worker = roster_.at(rank);
  return worker.state == WorkerState::busy && worker.experiment == id;
}

void MpiWorkerPool::look_after(Seconds now) {
  for (auto running = running_.begin(); running != running_.end();) {
    if (!running->outcome && running->tag != 0 && now > running->go_time + running->time_limit) {
      end_early(*running,
                Failed{FailureKind::timeout,
                       concat("still running after ", fixed(now - running->go_time, 1),
                              " s; experiment_timeout is ", fixed(running->time_limit, 1), " s")});
    }
    if (running->outcome && now > running->give_up_time) retire_silent_ranks(*running);
    const bool busy = std::any_of(running->ranks.begin(), running->ranks.end(),
                                  [&](int rank) { return is_busy_with(rank, running->id); });
    if (busy) {
      ++running;
      continue;
    }
    if (!running->outcome) {
      running->outcome.emplace(
          Failed{FailureKind::error, "every rank returned, none with an outcome"});
    }
    blame_memory(*running);
    completed_.push_back({running->id, std::move(*running->outcome), std::move(running->culprits)});
    running = running_.erase(running);
  }
}

void MpiWorkerPool::retire_silent_ranks(Running& running) {
  for (const int rank : running.ranks) {
    if (!is_busy_with(rank, running.id)) continue;
    roster_.at(rank).state = WorkerState::retired;
    if (timed_out(*running.outcome)) running.culprits.push_back(rank);
    groups_.forget(running.ranks);
    log_warning(concat(roster_.name(rank), " did not come back from ", running.name, " within ",
                       fixed(options_.abort_grace, 1), " s; going on without it"));
  }
}

// Makes the outcome "out of memory" if a worker of the experiment died and the system has ended a
// process there for want of memory. It is called when every living rank has sent its counts.
void MpiWorkerPool::blame_memory(Running& running) {
  if (!std::holds_alternative<Failed>(*running.outcome)) return;
  for (const int rank : running.ranks) {
    const WorkerEntry& worker = roster_.at(rank);
    if (worker.state != WorkerState::lost || worker.experiment != running.id) continue;
    if (!has_risen(running.oom_kills.at(rank), roster_.oom_kills(rank))) continue;
    running.outcome.emplace(outcome_of_kill(worker.info));
    running.culprits.clear();
    return;
  }
}

void MpiWorkerPool::lose(const Loss& loss) {
  changed_ = true;
  log_warning(concat(loss.reason, "; going on with ", size(), " workers"));
  Running* running = find(roster_.at(loss.rank).experiment);
  if (running == nullptr) return;
  groups_.forget(running->ranks);
  if (running->outcome && !timed_out(*running->outcome)) return;
  running->culprits.push_back(loss.rank);
  if (!running->outcome) end_early(*running, Failed{FailureKind::worker_lost, loss.reason});
}

}  // namespace dstune
