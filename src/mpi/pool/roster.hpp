// Rank 0's list of its workers: which are idle, busy, retired or lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mpi/base/this_process.hpp"
#include "mpi/base/waiting.hpp"
#include "mpi/lifeline/lifeline_listener.hpp"

namespace dstune {

enum class WorkerState {
  absent,  ///< the worker has not said hello yet
  idle,
  busy,
  retired,  ///< the worker is alive but did not come back from an experiment, or was dismissed
  lost,     ///< the worker is dead, or was silent for too long; its next message brings it back
};

struct WorkerEntry {
  WorkerInfo info;  ///< `rank` is always valid, the other members only after hello
  WorkerState state = WorkerState::absent;
  /// The experiment that the worker is busy with, or in which it was retired or lost; 0: none.
  std::uint64_t experiment = 0;
  bool visible = false;     ///< its process can be looked up from here
  bool dismissed = false;   ///< it gets no more work, whatever it says
  OomKills oom_kills = {};  ///< the counts that it sent last
  Silence silence;
};

/// A worker that was just found to be lost.
struct Loss {
  int rank = 0;
  std::string reason;  ///< "rank 3 on nodeB died"
};

class Roster {
 public:
  /// Lists the workers 1 .. world_size - 1 as absent; `self` is rank 0.
  Roster(int world_size, WorkerInfo self);

  WorkerEntry& at(int rank) { return workers_.at(static_cast<std::size_t>(rank - 1)); }
  const std::vector<WorkerEntry>& all() const noexcept { return workers_; }

  /// Records a worker's hello: it is idle from now on.
  /// @returns the address for the worker's lifeline, if its process cannot be seen from here
  std::optional<LifelineAddress> register_worker(const WorkerInfo& info);

  /// Records that the worker sent a message. @returns true if the worker was lost and is idle again
  /// now, because it had no experiment
  bool heard_from(int rank);

  /// Records that the worker is done with its experiment: it is idle, or retired if it was
  /// dismissed.
  void rest(int rank);

  /// Gives the worker no more work. A busy worker is retired once it rests.
  void dismiss(int rank);

  /// Finds the workers that died or became silent for longer than `timeout` since the last call;
  /// they are lost now.
  std::vector<Loss> find_losses(Seconds now, Seconds timeout);

  /// How many processes the out-of-memory killer has ended where `rank` runs: as seen from here if
  /// that is possible, else as the workers of its host have reported.
  OomKills oom_kills(int rank);

  /// The worker as messages name it: "rank 3 on nodeB".
  std::string name(int rank);

  int count(WorkerState state) const;
  const WorkerInfo& self() const noexcept { return self_; }

 private:
  /// Why the worker is lost now; empty if it is not.
  std::string loss_of(const WorkerEntry& worker, bool look, Seconds timeout);

  WorkerInfo self_;
  std::vector<WorkerEntry> workers_;
  std::optional<LifelineListener> lifelines_;  ///< made when the first worker needs one
  Seconds next_look_ = 0;                      ///< when to look at processes and lines next
};

}  // namespace dstune
