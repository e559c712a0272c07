#include "core/search/schedule/scheduler.hpp"

#include <set>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/schedule/slot_packing.hpp"
#include "core/search/schedule/worker_faults.hpp"

namespace dstune {
namespace {

// The mean time of a step. A limit on processor time stops a core in some of the steps only, which
// the median of short steps does not show.
Seconds mean_step_time(const Measured& measured) {
  const bool has_sum = measured.steps > 0 && measured.measure_time > 0;
  return has_sum ? measured.measure_time / measured.steps : typical_step_time(measured);
}

bool is_quarantined(const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  return failed != nullptr && failed->kind == FailureKind::quarantined;
}

}  // namespace

Scheduler::Scheduler(WorkerPool& pool, Journal& journal, Listener listener,
                     StopRequest stop_requested)
    : pool_(pool),
      journal_(journal),
      listener_(std::move(listener)),
      stop_requested_(std::move(stop_requested)),
      sick_(pool) {}

bool Scheduler::stop_requested() {
  if (!stopped_ && stop_requested_ && stop_requested_()) {
    stopped_ = true;
    // No process may survive the next signal: the experiments that run now must not count as
    // crashes of their own.
    journal_.stopped();
  }
  return stopped_;
}

std::vector<Record> Scheduler::run(const std::vector<Experiment>& batch) {
  Batch state{batch, std::vector<std::optional<Record>>(batch.size()), {}, {}};
  if (!batch.empty() && !std::exchange(remembers_, true)) {
    sick_.retire_again(journal_.records(), batch.front().ranks);
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (seen.insert(batch[i].key()).second) take_from_journal(state, i);
  }
  while (!state.queue.empty() || !state.running.empty()) {
    if (stop_requested() || shortage_ || wrong_sums_) give_up_queue(state);
    start_what_fits(state);
    if (is_short(state)) continue;
    if (state.queue.empty() && state.running.empty()) break;
    const auto completions = pool_.wait();
    for (const auto& completion : completions) finish(state, completion);
    if (completions.empty() && stop_requested()) break;
  }
  for (const auto& [id, running] : state.running) keep_doubted(state, running.pending);
  std::vector<Record> records;
  for (auto& record : state.records) {
    if (record) records.push_back(std::move(*record));
  }
  return records;
}

void Scheduler::give_up_queue(Batch& batch) {
  for (const auto& pending : batch.queue) keep_doubted(batch, pending);
  batch.queue.clear();
}

// Keeps the first measurement of an experiment that was to be measured again but was not.
void Scheduler::keep_doubted(Batch& batch, const Pending& pending) {
  if (!pending.doubted) return;
  Record record{batch.experiments[pending.index], *pending.doubted, pending.failed->ranks,
                pending.started, journal_.now()};
  journal_.finished(record);
  if (listener_) listener_(record, false);
  batch.records[pending.index] = std::move(record);
}

int Scheduler::slots(int ranks) const { return count_slots(pool_.idle(), ranks); }

void Scheduler::take_from_journal(Batch& batch, std::size_t index) {
  auto found = journal_.find(batch.experiments[index]);
  if (!found) {
    batch.queue.push_back({index});
    return;
  }
  // A quarantined experiment has no record yet, and a run that adds no record is given up.
  if (is_quarantined(found->outcome) && !journal_.has_record_of(*found)) journal_.finished(*found);
  if (listener_) listener_(*found, true);
  batch.records[index] = std::move(found);
}

void Scheduler::start_what_fits(Batch& batch) {
  while (!batch.queue.empty()) {
    auto& next = batch.queue.front();
    const auto& experiment = batch.experiments[next.index];
    auto slot = slot_for(batch, next, pool_.idle());
    if (slot.workers.empty() || has_better(batch, next, slot)) return;
    const auto ranks = ranks_of(slot.workers);
    journal_.started(experiment, ranks);
    const auto id = next_id_++;
    Running running{std::move(next), std::move(slot.workers), journal_.now()};
    batch.queue.pop_front();
    batch.running.emplace(id, std::move(running));
    pool_.start(id, experiment, ranks);
    if (start_listener_) start_listener_(experiment);
  }
}

Slot Scheduler::slot_for(const Batch& batch, const Pending& pending,
                         const std::vector<Worker>& from) const {
  Doubts doubts;
  if (pending.failed) {
    doubts.tried = pending.failed->ranks;
    doubts.own = culprits_of(*pending.failed);
  }
  doubts.suspects = doubts.own;
  const auto add = [&](const Pending& other) {
    if (!other.failed) return;
    const auto culprits = culprits_of(*other.failed);
    doubts.suspects.insert(doubts.suspects.end(), culprits.begin(), culprits.end());
  };
  for (const auto& other : batch.queue) add(other);
  for (const auto& [id, running] : batch.running) add(running.pending);
  doubts.slow.assign(slow_.ranks().begin(), slow_.ranks().end());
  return choose_trusted_slot(from, batch.experiments[pending.index].ranks, doubts);
}

// Whether waiting for workers that are busy would give a better slot. If nothing runs, the idle
// workers are all there are.
bool Scheduler::has_better(const Batch& batch, const Pending& pending, const Slot& slot) const {
  if (batch.running.empty()) return false;
  const auto best = slot_for(batch, pending, known_workers(batch));
  return slot.concessions > best.concessions ||
         count_hosts(slot.workers) > count_hosts(best.workers);
}

std::vector<Worker> Scheduler::known_workers(const Batch& batch) const {
  auto known = pool_.idle();
  for (const auto& [id, running] : batch.running) {
    known.insert(known.end(), running.workers.begin(), running.workers.end());
  }
  return known;
}

bool Scheduler::is_short(const Batch& batch) {
  if (batch.queue.empty() || !batch.running.empty()) return false;
  const auto& experiment = batch.experiments[batch.queue.front().index];
  if (experiment.ranks <= pool_.size()) return false;
  shortage_ = Shortage{experiment.name, experiment.ranks, pool_.size()};
  return true;
}

void Scheduler::finish(Batch& batch, const Completion& completion) {
  const auto found = batch.running.find(completion.id);
  if (found == batch.running.end()) return;  // an experiment of an earlier run(), which was stopped
  const Running over = std::move(found->second);
  batch.running.erase(found);
  note(completion.outcome);
  if (doubt(batch, over, completion) || retry(batch, over, completion)) return;
  const auto index = over.pending.index;
  Record record = record_of(batch, over, completion);
  journal_.finished(record);
  if (listener_) listener_(record, false);
  if (over.pending.failed && !over.pending.doubted) {
    sick_.judge(*over.pending.failed, completion, record);
  }
  batch.records[index] = std::move(record);
}

// A first, slow measurement is kept if the second try ended without a measurement.
Record Scheduler::record_of(const Batch& batch, const Running& over,
                            const Completion& completion) const {
  const Pending& pending = over.pending;
  Record record{batch.experiments[pending.index], completion.outcome, ranks_of(over.workers),
                over.started, journal_.now()};
  if (pending.doubted && !std::holds_alternative<Measured>(completion.outcome)) {
    record.outcome = *pending.doubted;
    record.ranks = pending.failed->ranks;
    record.started = pending.started;
  } else if (pending.failed) {
    record.failed_tries.push_back(*pending.failed);
  }
  return record;
}

bool Scheduler::doubt(Batch& batch, const Running& over, const Completion& completion) {
  const auto* measured = std::get_if<Measured>(&completion.outcome);
  const Experiment& experiment = batch.experiments[over.pending.index];
  // What measures the machine says nothing of how the ranks share the work of a step.
  if (measured == nullptr || experiment.measures_machine) return false;
  const auto suspects = slow_.look(experiment.name, *measured, over.workers);
  if (over.pending.doubted) {
    const auto& first = std::get<Measured>(*over.pending.doubted);
    // Too few others may have been left, so that suspects ran it again.
    auto elsewhere = over.pending.suspects;
    std::erase_if(elsewhere, [&](const SlowSuspect& suspect) {
      return contains(ranks_of(over.workers), suspect.worker.rank);
    });
    slow_.compare(experiment.name, elsewhere, mean_step_time(first), mean_step_time(*measured));
  }
  for (const auto& warning : slow_.take_warnings()) log_warning(warning);
  if (suspects.empty() || over.pending.failed) return false;
  std::vector<int> slow(slow_.ranks().begin(), slow_.ranks().end());
  for (const auto& suspect : suspects) slow.push_back(suspect.worker.rank);
  const auto others = choose_slot(without(known_workers(batch), slow), experiment.ranks, {});
  if (others.empty() || count_hosts(others) > count_hosts(over.workers)) return false;
  if (stop_requested()) return false;
  FailedTry doubted{ranks_of(over.workers), {}, false, ""};
  std::vector<std::string> how;
  for (const auto& suspect : suspects) {
    doubted.culprits.push_back({suspect.worker.rank, suspect.worker.host});
    how.push_back(concat(name_of(doubted.culprits.back()), " ", suspect.how));
  }
  doubted.reason = concat("measured at ", format_seconds(mean_step_time(*measured)),
                          " per step, but ", join(how, ", "));
  log_line(concat(experiment.name, " is measured once more, on other ranks: ", join(how, ", ")));
  batch.queue.push_front(
      {over.pending.index, std::move(doubted), completion.outcome, suspects, over.started});
  return true;
}

void Scheduler::avoid(const Worker& worker, const std::string& how) {
  slow_.accuse(worker, how);
  for (const auto& warning : slow_.take_warnings()) log_warning(warning);
}

void Scheduler::note(const Outcome& outcome) {
  const auto* failed = std::get_if<Failed>(&outcome);
  if (failed == nullptr) return;
  if (failed->kind == FailureKind::device_lost) lost_devices_.push_back(failed->reason);
  if (failed->kind == FailureKind::wrong_sums) wrong_sums_ = failed->reason;
}

bool Scheduler::retry(Batch& batch, const Running& over, const Completion& completion) {
  if (over.pending.failed) return false;
  auto failed = find_fault(completion, over.workers);
  if (!failed) return false;
  if (stop_requested()) return true;  // no record is written, so that the resumed run tries it
  log_warning(concat(batch.experiments[over.pending.index].name, " failed (", failed->reason,
                     "); it is tried once more, on other ranks if there are enough"));
  batch.queue.push_front({over.pending.index, std::move(failed), {}, {}, 0});
  return true;
}

}  // namespace dstune
