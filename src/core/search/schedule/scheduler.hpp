// A FIFO queue over a WorkerPool: slots, journal, resume, and one retry of failures that may be a
// worker's fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/experiment.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/schedule/sick_workers.hpp"
#include "core/search/schedule/slot_packing.hpp"
#include "core/search/schedule/slow_workers.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// Says that there are too few workers for a group.
struct Shortage {
  std::string experiment;
  int needed = 0;  ///< the workers that it needs
  int left = 0;
};

/// Runs batches of experiments. Several run at once if the pool has ranks for them. An experiment
/// spans as few hosts as it would with all workers idle, and waits for such a slot rather than
/// being measured over a slower network than the others.
///
/// A failure that may be a worker's fault (find_fault) is followed by one more try, on other ranks
/// if the pool has enough, for which the experiment waits. Meanwhile its culprits get no other
/// experiment if there are enough others. If it runs without them, those that are sick are retired,
/// and a message names them; if it fails again, the failure is its outcome.
///
/// An experiment that was measured with a worker that looks slow (SlowWorkers) is measured once
/// more on others, if there are enough. The second measurement is its outcome, and the first is
/// among its failed tries. Slow workers get work only where the others are too few.
class Scheduler {
 public:
  /// Is called for every finished record, measured now or found in the journal.
  using Listener = std::function<void(const Record& record, bool from_journal)>;
  /// Returns true to end the run early (a signal): no more experiments are started. Those that run
  /// are waited for, unless WorkerPool::wait() returns without one (as a pool that knows of the
  /// signal does); Journal::stopped() is called first.
  using StopRequest = std::function<bool()>;

  /// `listener` and `stop_requested` may be empty.
  Scheduler(WorkerPool& pool, Journal& journal, Listener listener, StopRequest stop_requested);

  /// Calls `listener` for each experiment that is sent to workers from now on, a second try too.
  void call_at_start(std::function<void(const Experiment&)> listener) {
    start_listener_ = std::move(listener);
  }

  /// Runs `batch` and returns its records in the order of `batch`; equal experiments run once and
  /// have one record. The list is shorter if the run was stopped, if too few workers are left for a
  /// group (shortage()), or if sums were wrong (wrong_sums(); experiments that run are waited for).
  /// "started" is in the journal before an experiment is sent, "finished" before the listener or
  /// the caller learns of it.
  std::vector<Record> run(const std::vector<Experiment>& batch);

  /// The shortage for which run() gave up, if it did: it starts no more experiments.
  const std::optional<Shortage>& shortage() const { return shortage_; }

  /// The reason, with the ranks, if run() gave up because collectives gave wrong sums: it starts no
  /// more experiments.
  const std::optional<std::string>& wrong_sums() const { return wrong_sums_; }

  /// A line for each rank that is retired because it lost its device: "rank 3 on nodeB: why".
  const std::vector<std::string>& lost_devices() const { return lost_devices_; }

  /// Gives `worker` work only where the others are too few, and says `how` it was found to be slow.
  void avoid(const Worker& worker, const std::string& how);

  /// A line for each worker that was found to be slow: "rank 3 on nodeB had 26 % of a core ...".
  const std::vector<std::string>& slow_workers() const { return slow_.lines(); }

  /// The number of experiments of `ranks` ranks that can run at once now.
  int slots(int ranks) const;
  /// See WorkerPool::stay_in_touch().
  void stay_in_touch() { pool_.stay_in_touch(); }

 private:
  struct Pending {
    std::size_t index = 0;  ///< the experiment's place in the batch
    std::optional<FailedTry> failed = {};
    /// If it failed because the workers looked slow: the measurement, those workers, and when it
    /// started.
    std::optional<Outcome> doubted = {};
    std::vector<SlowSuspect> suspects = {};
    Seconds started = 0;  ///< when the doubted measurement started
  };
  struct Running {
    Pending pending;
    std::vector<Worker> workers;
    Seconds started = 0;
  };
  struct Batch {
    const std::vector<Experiment>& experiments;
    std::vector<std::optional<Record>> records;
    std::deque<Pending> queue;
    std::map<std::uint64_t, Running> running;
  };

  bool stop_requested();
  void take_from_journal(Batch& batch, std::size_t index);
  void start_what_fits(Batch& batch);
  Slot slot_for(const Batch& batch, const Pending& pending, const std::vector<Worker>& from) const;
  bool has_better(const Batch& batch, const Pending& pending, const Slot& slot) const;
  /// Idle workers, and those that run an experiment of the batch.
  std::vector<Worker> known_workers(const Batch& batch) const;
  bool is_short(const Batch& batch);
  void give_up_queue(Batch& batch);
  void keep_doubted(Batch& batch, const Pending& pending);
  void finish(Batch& batch, const Completion& completion);
  void note(const Outcome& outcome);
  bool retry(Batch& batch, const Running& over, const Completion& completion);
  /// Learns from the measurement how fast its workers were. @returns whether it is to be measured
  /// again, because some looked slow
  bool doubt(Batch& batch, const Running& over, const Completion& completion);
  Record record_of(const Batch& batch, const Running& over, const Completion& completion) const;

  WorkerPool& pool_;
  Journal& journal_;
  Listener listener_;
  std::function<void(const Experiment&)> start_listener_ = {};
  StopRequest stop_requested_;
  std::uint64_t next_id_ = 1;
  bool stopped_ = false;
  /// The workers that were retired in the run that goes on are retired again.
  bool remembers_ = false;
  std::optional<Shortage> shortage_;
  std::optional<std::string> wrong_sums_;
  std::vector<std::string> lost_devices_;
  SickWorkers sick_;
  SlowWorkers slow_;
};

}  // namespace dstune
