// Rank 0's side of the dispatch: it sends experiments, receives outcomes, and acts if a rank fails.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/search/schedule/worker_pool.hpp"
#include "mpi/base/communicator.hpp"
#include "mpi/base/messages.hpp"
#include "mpi/pool/group_directory.hpp"
#include "mpi/pool/roster.hpp"

namespace dstune {

struct PoolOptions {
  Seconds heartbeat = 2;        ///< the longest silence towards a worker
  Seconds worker_timeout = 30;  ///< a worker silent for so long is lost
  /// A rank that is not idle so long after its experiment ended is retired.
  Seconds abort_grace = 10;
  Seconds start_timeout = 60;         ///< how long to wait for the hello of every worker
  std::function<bool()> interrupted;  ///< if given: wait() returns once when it becomes true
};

/// The ranks 1 .. size-1 of `world`, which run run_worker_loop. A rank that dies or hangs costs its
/// experiment (Failed), not the run. A rank that lost its device gets no more work.
///
/// Between calls of wait(), call stay_in_touch() or poll() at least every few seconds.
class MpiWorkerPool final : public WorkerPool {
 public:
  /// Waits until all workers have reported, at most for start_timeout; the run goes on without the
  /// others.
  /// @throws MpiError
  MpiWorkerPool(const Communicator& world, PoolOptions options);

  std::vector<Worker> idle() const override;
  int size() const override;
  void start(std::uint64_t id, const Experiment& experiment,
             const std::vector<int>& ranks) override;
  void retire(int rank) override;
  /// Returns at once, with nothing, if nothing runs.
  std::vector<Completion> wait() override;
  void stay_in_touch() override;

  void call_while_waiting(std::function<void()> work) override { while_waiting_ = std::move(work); }

  /// Reads the messages that have arrived, sends heartbeats and enforces time limits; does not
  /// block.
  /// @returns whether any message was read
  bool poll();

  /// Every worker that ever reported, by rank.
  std::vector<WorkerInfo> workers() const;

  /// Ends the run: experiments that still run are aborted without an outcome, and the workers leave
  /// run_worker_loop.
  /// @returns true if every rank is alive and will call MPI_Finalize, which the caller must do too.
  ///          False: a rank died or hangs, and this process must leave by _exit when its files are
  ///          written.
  [[nodiscard]] bool stop();

 private:
  struct Running {
    std::uint64_t id = 0;
    std::string name;
    std::vector<int> ranks;
    int ready = 0;
    int tag = 0;  ///< 0 before the order "go"
    Seconds time_limit = 0;
    Seconds go_time = 0;
    std::optional<Outcome> outcome;
    std::vector<int> culprits;
    /// When ranks that are still busy are retired, once there is an outcome.
    Seconds give_up_time = 0;
    std::map<int, OomKills> oom_kills;  ///< by rank: the counts before the experiment began
  };

  /// The seconds in which this process was awake: an experiment that was paused with the whole job
  /// (SIGTSTP, Slurm's suspend) has not used up its time limit then.
  Seconds now();
  void obey(const Message& message);
  void welcome(const Message& hello);
  void on_failure(const Message& message, Running* running);
  Outcome failure_of(const Message& message);
  std::string names(const std::vector<int>& ranks);
  void on_idle(int rank, std::uint64_t id);
  void give_go(Running& running);
  void end(Running& running, Outcome&& outcome);
  void end_early(Running& running, Outcome&& outcome);
  void look_after(Seconds now);
  void lose(const Loss& loss);
  void retire_silent_ranks(Running& running);
  void blame_memory(Running& running);
  void send_heartbeats(Seconds now);
  bool is_busy_with(int rank, std::uint64_t id);
  Running* find(std::uint64_t id);
  bool wait_until(Seconds limit, const std::function<bool()>& done);

  PoolOptions options_;
  std::function<void()> while_waiting_;
  /// It is never broken, so that its length is all the time in which this process listened.
  Silence awake_;
  Mailbox mailbox_;
  Roster roster_;
  GroupDirectory groups_;
  std::list<Running> running_;
  std::vector<Completion> completed_;
  std::vector<bool> said_bye_;  ///< by rank
  bool changed_ = false;
  bool saw_interrupt_ = false;
  Seconds last_heartbeat_ = 0;
};

/// Ends the run on all workers when there is no pool yet, because the configuration is wrong. Every
/// rank is alive, so all of them can finalize. Called by rank 0 only.
void broadcast_stop(const Communicator& world);

}  // namespace dstune
