// FIFO queue over a WorkerPool: slots, journal, resume, one retry of what may be a worker's fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/experiment/experiment.hpp"
#include "core/report/journal/journal.hpp"
#include "core/search/schedule/slow_workers.hpp"
#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// Too few workers for a group.
struct Shortage {
  std::string experiment;
  int needed = 0;  ///< workers
  int left = 0;
};

/// Runs batches of experiments. Several run at once if the pool has ranks for them. An experiment
/// spans as few hosts as it would with all workers idle, and waits for such a slot rather than
/// being measured over a slower network than the others.
///
/// A failure that may be a worker's (find_fault) is followed by one more try, on other ranks if the
/// pool has enough: it waits for them. Its culprits get nothing else meanwhile. If it runs without
/// them, those that are sick are retired, by name; if it fails again, that is its outcome.
///
/// What was measured with a worker that looks slow (SlowWorkers) is measured once more on others,
/// where there are enough, and that is its outcome; the first is among its failed tries. Who is
/// slow gets work only where the others are too few.
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
  /// stopped, no group of workers is large enough any more (shortage()), or sums were wrong
  /// (wrong_sums(); experiments that run are waited for). Equal experiments run once. "started" is
  /// in the journal before an experiment is sent, "finished" before the listener or the caller
  /// hears of it.
  std::vector<Record> run(const std::vector<Experiment>& batch);

  /// Why run() gave up, if so: it starts nothing any more.
  const std::optional<Shortage>& shortage() const { return shortage_; }

  /// Why run() gave up, if collectives gave wrong sums, with the ranks: it starts nothing any more.
  const std::optional<std::string>& wrong_sums() const { return wrong_sums_; }

  /// A line for each rank that is retired since it lost its device: "rank 3 on nodeB: why".
  const std::vector<std::string>& lost_devices() const { return lost_devices_; }

  /// A line for each worker that was found to be slow: "rank 3 on nodeB had 26 % of a core ...".
  const std::vector<std::string>& slow_workers() const { return slow_.lines(); }

  /// How many experiments of `ranks` ranks can run at once now: the tuner's k.
  int slots(int ranks) const;

 private:
  struct Pending {
    std::size_t index = 0;  ///< in the batch
    std::optional<FailedTry> failed = {};
    /// Then, if it was measured, but with workers that looked slow: what came of it, and who they
    /// were.
    std::optional<Outcome> doubted = {};
    std::vector<SlowSuspect> suspects = {};
    Seconds started = 0;  ///< then
  };
  struct Slot {
    std::vector<Worker> workers;
    /// 0: none that is slow or under suspicion, 1: none under suspicion, 2: not its own culprits,
    /// 3: whoever is there.
    int concessions = 0;
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
  std::vector<Worker> known_workers(const Batch& batch) const;  ///< idle, or running some of it
  bool is_short(const Batch& batch);
  void give_up_queue(Batch& batch);
  void keep_doubted(Batch& batch, const Pending& pending);
  void retire_again(int ranks);
  void finish(Batch& batch, const Completion& completion);
  void note(const Outcome& outcome);
  bool retry(Batch& batch, const Running& over, const Completion& completion);
  /// Whether it is to be measured again as it was slow, which its workers are learnt from.
  bool doubt(Batch& batch, const Running& over, const Completion& completion);
  Record record_of(const Batch& batch, const Running& over, const Completion& completion) const;
  void judge(const Running& over, const Completion& completion, const Record& record);
  void name_constant_culprits(const FailedTry& first, const Completion& second,
                              const Record& record);

  WorkerPool& pool_;
  Journal& journal_;
  Listener listener_;
  StopRequest stop_requested_;
  std::uint64_t next_id_ = 1;
  bool stopped_ = false;
  bool remembers_ = false;  ///< who was retired in the run that goes on
  std::optional<Shortage> shortage_;
  std::optional<std::string> wrong_sums_;
  std::vector<std::string> lost_devices_;
  SlowWorkers slow_;
  std::set<int> named_;  ///< as the constant culprit
};

}  // namespace dstune
