#include "core/search/scheduler.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/slot_packing.hpp"

namespace dstune {

Scheduler::Scheduler(WorkerPool& pool, Journal& journal, Listener listener,
                     StopRequest stop_requested)
    : pool_(pool),
      journal_(journal),
      listener_(std::move(listener)),
      stop_requested_(std::move(stop_requested)) {}

bool Scheduler::stop_requested() {
  if (!stopped_ && stop_requested_ && stop_requested_()) {
    stopped_ = true;
    // The next signal may be one that nobody survives: what runs now is no crash of its own.
    journal_.stopped();
  }
  return stopped_;
}

std::vector<Record> Scheduler::run(const std::vector<Experiment>& batch) {
  Batch state{batch, std::vector<std::optional<Record>>(batch.size()), {}, {}};
  std::set<std::string> seen;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (seen.insert(batch[i].key()).second) take_from_journal(state, i);
  }
  while (!state.queue.empty() || !state.running.empty()) {
    if (stop_requested()) state.queue.clear();
    start_what_fits(state);
    if (state.running.empty()) check_size(state);
    if (state.queue.empty() && state.running.empty()) break;
    const auto completions = pool_.wait();
    for (const auto& completion : completions) finish(state, completion);
    if (completions.empty() && stop_requested()) break;
  }
  std::vector<Record> records;
  for (auto& record : state.records) {
    if (record) records.push_back(std::move(*record));
  }
  return records;
}

int Scheduler::slots(int ranks) const { return count_slots(pool_.idle(), ranks); }

void Scheduler::take_from_journal(Batch& batch, std::size_t index) {
  auto found = journal_.find(batch.experiments[index]);
  if (!found) {
    batch.queue.push_back({index, {}});
    return;
  }
  if (listener_) listener_(*found, true);
  batch.records[index] = std::move(found);
}

void Scheduler::start_what_fits(Batch& batch) {
  while (!batch.queue.empty()) {
    auto& next = batch.queue.front();
    const auto& experiment = batch.experiments[next.index];
    const auto idle = pool_.idle();
    auto known = idle;
    for (const auto& [id, running] : batch.running) {
      known.insert(known.end(), running.workers.begin(), running.workers.end());
    }
    auto slot = choose_slot(idle, experiment.ranks, next.avoid);
    if (slot.empty()) return;
    const bool has_choice = !batch.running.empty();
    if (has_choice &&
        fewest_hosts(slot, experiment.ranks) > fewest_hosts(known, experiment.ranks)) {
      return;
    }
    const auto ranks = ranks_of(slot);
    journal_.started(experiment, ranks);
    const auto id = next_id_++;
    Running running{std::move(next), std::move(slot), journal_.now()};
    batch.queue.pop_front();
    batch.running.emplace(id, std::move(running));
    pool_.start(id, experiment, ranks);
  }
}

void Scheduler::check_size(const Batch& batch) const {
  if (batch.queue.empty()) return;
  const auto& experiment = batch.experiments[batch.queue.front().index];
  if (experiment.ranks <= pool_.size()) return;
  throw Error(concat(experiment.name, " needs a group of ", experiment.ranks, " workers, but only ",
                     pool_.size(), " are still alive; start the run again with --resume"));
}

void Scheduler::finish(Batch& batch, const Completion& completion) {
  const auto found = batch.running.find(completion.id);
  if (found == batch.running.end()) return;  // left over from a run that was stopped
  const Running over = std::move(found->second);
  batch.running.erase(found);
  if (retry(batch, over, completion.outcome)) return;
  const auto index = over.pending.index;
  Record record{batch.experiments[index], completion.outcome, ranks_of(over.workers), over.started,
                journal_.now()};
  journal_.finished(record);
  if (listener_) listener_(record, false);
  batch.records[index] = std::move(record);
}

bool Scheduler::retry(Batch& batch, const Running& over, const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  const bool first_try = over.pending.avoid.empty();
  if (failed == nullptr || failed->kind != FailureKind::worker_lost || !first_try) return false;
  if (stop_requested()) return false;
  log_warning(concat(batch.experiments[over.pending.index].name, " lost a worker (", failed->reason,
                     "); it is tried once more, on other ranks where there are enough"));
  batch.queue.push_front({over.pending.index, ranks_of(over.workers)});
  return true;
}

}  // namespace dstune
