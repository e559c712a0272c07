// FIFO queue over a WorkerPool: slots, journal, resume, one retry after a lost worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/report/journal.hpp"
#include "core/search/worker_pool.hpp"
#include "core/train/experiment.hpp"

namespace dstune {

/// Runs batches of experiments. Several run at once if the pool has ranks for them. An experiment
/// spans as few hosts as it would with all workers idle, and waits for such a slot rather than
/// being measured over a slower network than the others.
///
/// An experiment that lost a worker is tried once more, on other ranks if there are enough; the
/// second loss is its outcome.
class Scheduler {
 public:
  /// Called for every finished record, measured now or found in the journal.
  using Listener = std::function<void(const Record& record, bool from_journal)>;
  /// True ends the run early (a signal): experiments not yet started are not. Those that run are
  /// waited for, unless WorkerPool::wait() returns without one (a pool that knows of the signal);
  /// Journal::stopped() is called first.
  using StopRequest = std::function<bool()>;

  /// `listener` and `stop_requested` may be empty.
  Scheduler(WorkerPool& pool, Journal& journal, Listener listener, StopRequest stop_requested);

  /// The records in the order of `batch`, equal experiments once each; shorter if the run was
  /// stopped. Equal experiments run once. "started" is in the journal before an experiment is sent,
  /// "finished" before the listener or the caller hears of it.
  /// @throws Error  if no group of workers is large enough any more; experiments that run are
  ///                waited for and in the journal by then
  std::vector<Record> run(const std::vector<Experiment>& batch);

  /// How many experiments of `ranks` ranks can run at once now: the tuner's k.
  int slots(int ranks) const;

 private:
  struct Pending {
    std::size_t index = 0;   ///< in the batch
    std::vector<int> avoid;  ///< ranks of the try that lost a worker; empty on the first try
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
  void check_size(const Batch& batch) const;
  void finish(Batch& batch, const Completion& completion);
  bool retry(Batch& batch, const Running& over, const Outcome& outcome);

  WorkerPool& pool_;
  Journal& journal_;
  Listener listener_;
  StopRequest stop_requested_;
  std::uint64_t next_id_ = 1;
  bool stopped_ = false;
};

}  // namespace dstune
