// FIFO queue over a WorkerPool: slots, journal, resume, one retry after a lost worker.
#pragma once

#include <functional>
#include <vector>

#include "core/report/journal.hpp"
#include "core/search/worker_pool.hpp"
#include "core/train/experiment.hpp"

namespace dstune {

/// Runs batches of experiments. Several run at once if the pool has ranks for them; ranks of one
/// experiment are packed by host (an experiment spans as few hosts as possible).
class Scheduler {
 public:
  /// Called for every finished record, measured now or found in the journal.
  using Listener = std::function<void(const Record& record, bool from_journal)>;
  /// True ends the run early (a signal): experiments not yet started are not.
  using StopRequest = std::function<bool()>;

  Scheduler(WorkerPool& pool, Journal& journal, Listener listener, StopRequest stop_requested);

  /// The records in the order of `batch`; shorter if the run was stopped. Equal experiments run
  /// once.
  /// @throws Error  if no group of workers is large enough any more
  std::vector<Record> run(const std::vector<Experiment>& batch);

  /// How many experiments of `ranks` ranks can run at once now: the tuner's k.
  int slots(int ranks) const;

 private:
  WorkerPool& pool_;
  Journal& journal_;
  Listener listener_;
  StopRequest stop_requested_;
  std::uint64_t next_id_ = 1;
};

}  // namespace dstune
