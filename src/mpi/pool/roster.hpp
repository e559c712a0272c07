// Rank 0's book of its workers: who is idle, busy, retired, lost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mpi/base/this_process.hpp"
#include "mpi/base/waiting.hpp"
#include "mpi/lifeline/lifeline_listener.hpp"

namespace dstune {

enum class WorkerState {
  absent,  ///< has not said hello yet
  idle,
  busy,
  retired,  ///< alive, but did not come back from an experiment, or dismissed
  lost,     ///< dead, or silent for too long; comes back with its next word
};

struct WorkerEntry {
  WorkerInfo info;  ///< rank is always valid, the rest after hello
  WorkerState state = WorkerState::absent;
  std::uint64_t experiment = 0;  ///< that it is busy with, or retired or lost in; 0: none
  bool visible = false;          ///< its pid can be looked up from here
  bool dismissed = false;        ///< gets no more work, whatever it says
  OomKills oom_kills = {};       ///< that it last spoke of
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
  /// @returns where the worker is to make its lifeline, if its process cannot be seen from here
  std::optional<LifelineAddress> register_worker(const WorkerInfo& info);

  /// The worker said something: true if it was lost and is now idle again, as it had no experiment.
  bool heard_from(int rank);

  /// The worker is done with its experiment: idle, or retired if it was dismissed.
  void rest(int rank);

  /// It gets no more work. Busy, it is retired once it rests.
  void dismiss(int rank);

  /// Workers that died or were silent for longer than `timeout` since the last call, now lost.
  std::vector<Loss> find_losses(Seconds now, Seconds timeout);

  /// How many the out-of-memory killer has ended where `rank` is: as it can be seen from here, else
  /// as the workers of its host have said.
  OomKills oom_kills(int rank);

  /// "rank 3 on nodeB"
  std::string name(int rank);

  int count(WorkerState state) const;
  const WorkerInfo& self() const noexcept { return self_; }

 private:
  /// Why the worker is lost now; empty if it is not.
  std::string loss_of(const WorkerEntry& worker, bool look, Seconds timeout);

  WorkerInfo self_;
  std::vector<WorkerEntry> workers_;
  std::optional<LifelineListener> lifelines_;  ///< from the first worker that needs one
  Seconds next_look_ = 0;                      ///< at processes and lines
};

}  // namespace dstune
