// Rank 0's book of its workers: who is idle, busy, retired, lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mpi/waiting.hpp"
#include "mpi/worker_info.hpp"

namespace dstune {

enum class WorkerState {
  absent,  ///< has not said hello yet
  idle,
  busy,
  retired,  ///< alive, but did not come back from an experiment
  lost,     ///< dead, or silent for too long; comes back with its next word
};

struct WorkerEntry {
  WorkerInfo info;  ///< rank is always valid, the rest after hello
  WorkerState state = WorkerState::absent;
  std::uint64_t experiment = 0;  ///< that it is busy with, or retired or lost in; 0: none
  bool visible = false;          ///< its pid can be looked up from here
  Silence silence;
};

/// A worker that was just found to be lost.
struct Loss {
  int rank = 0;
  std::string reason;  ///< "rank 3 on nodeB died"
};

class Roster {
 public:
  /// Workers 1 .. world_size - 1; `self` is rank 0.
  Roster(int world_size, WorkerInfo self);

  WorkerEntry& at(int rank) { return workers_.at(static_cast<std::size_t>(rank - 1)); }
  const std::vector<WorkerEntry>& all() const noexcept { return workers_; }

  /// Anything but absent.
  void register_worker(const WorkerInfo& info);

  /// The worker said something: true if it was lost and is now idle again, as it had no experiment.
  bool heard_from(int rank);

  /// Workers that died or were silent for longer than `timeout` since the last call, now lost.
  std::vector<Loss> find_losses(Seconds now, Seconds timeout);

  /// "rank 3 on nodeB"
  std::string name(int rank);

  int count(WorkerState state) const;
  const WorkerInfo& self() const noexcept { return self_; }

 private:
  WorkerInfo self_;
  std::vector<WorkerEntry> workers_;
  Seconds next_look_ = 0;  ///< at processes
};

}  // namespace dstune
