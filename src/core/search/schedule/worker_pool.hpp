// The interface to the workers that run experiments: real ranks (mpi), or a scripted stand-in
// (tests).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

struct Worker {
  int rank = 0;  ///< world rank, >= 1
  std::string host;
  std::string hardware = {};  ///< equal for two workers whose cores and devices are of one kind

  bool operator==(const Worker&) const = default;
};

/// An experiment that is over.
struct Completion {
  std::uint64_t id = 0;  ///< as given to start()
  Outcome outcome;
  /// The ranks that a failure may be due to rather than to the experiment: the first that reported
  /// an exception, those that died, those that did not come back in time.
  std::vector<int> culprits = {};
};

/// Rank 0's view of the workers. Single-threaded; only wait() blocks.
class WorkerPool {
 public:
  virtual ~WorkerPool() = default;

  /// Workers that could take an experiment now, sorted by host, then rank.
  virtual std::vector<Worker> idle() const = 0;

  /// Workers that are alive and not retired, busy or idle.
  virtual int size() const = 0;

  /// Reserves exactly these idle ranks and starts the experiment on them.
  /// ranks.size() == experiment.ranks.
  virtual void start(std::uint64_t id, const Experiment& experiment,
                     const std::vector<int>& ranks) = 0;

  /// Gives this rank no more work, for good: it is neither idle() nor counted by size() any more.
  virtual void retire(int rank) = 0;

  /// Waits until at least one experiment ended or the pool changed (a worker came back or was
  /// lost). @returns the experiments that ended, possibly none. Time-outs and lost workers are
  /// outcomes (Failed)
  virtual std::vector<Completion> wait() = 0;

  /// To be called every few seconds while rank 0 computes for long between calls of wait(): workers
  /// give up a rank 0 that is silent for a minute. The call is cheap.
  virtual void stay_in_touch() = 0;

  /// Makes wait() call `work` (which may be empty) again and again while it waits.
  virtual void call_while_waiting(std::function<void()> work) = 0;
};

}  // namespace dstune
