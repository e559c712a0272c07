// A worker's line to rank 0: orders, heartbeat and lease.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpi/base/messages.hpp"
#include "mpi/base/this_process.hpp"
#include "mpi/base/waiting.hpp"
#include "mpi/lifeline/lifeline.hpp"

namespace dstune {

struct WorkerOptions {
  Seconds heartbeat = 2;  ///< longest silence towards rank 0
  Seconds lease = 60;     ///< without a sign of rank 0 for so long, the worker is on its own
  std::vector<DeviceInfo> devices;  ///< what the worker's backends found, for rank 0
  /// Called once, when rank 0 has said who it is.
  std::function<void(const WorkerInfo& self, const WorkerInfo& rank0)> met_rank0;
  /// Called once, if rank 0 listens for this worker.
  std::function<void(const LifelineAddress& rank0, int own_rank)> offered_lifeline;
  /// Called when rank 0 ends the run in order: from now on its end is no death.
  std::function<void()> told_to_stop;
};

class WorkerLink {
 public:
  WorkerLink(const Communicator& world, const WorkerOptions& options);

  /// The rank of this process in `world`.
  int rank() const noexcept { return self_.rank; }
  /// Folder of its control group of memory, or "".
  const std::string& group() const noexcept { return self_.oom_kills.group; }

  void say(MessageKind kind, const json::object& content = {});

  /// From begin() to end(), poll() ends the experiment `id` when rank 0 says so, or has said so in
  /// an order that is still to be fetched.
  void begin(std::uint64_t id);
  void end() noexcept { running_.reset(); }

  /// Sends a heartbeat if it is due and reads orders. Cheap: looks at most every 500 us.
  /// @throws ExperimentAborted  only between begin() and end()
  void poll();

  /// The next order that poll() did not obey itself, if there is one. Looks in any case.
  std::optional<Message> next_order();

  /// Rank 0 is dead.
  bool orphaned() const noexcept { return orphaned_; }
  /// Rank 0 is dead, or silent for longer than the lease.
  bool lost() const noexcept { return orphaned_ || cut_off_; }

 private:
  void look(Seconds now);
  void sort(Message message);
  bool ends_the_experiment(const Message& message) const;

  WorkerOptions options_;
  WorkerInfo self_;
  Mailbox mailbox_;
  std::deque<Message> orders_;
  std::optional<std::uint64_t> running_;
  bool aborted_ = false;
  std::optional<int> rank0_pid_;  ///< if it can be watched from here
  Silence rank0_;
  Seconds last_look_ = 0;
  Seconds last_word_ = 0;
  bool orphaned_ = false;
  bool cut_off_ = false;
};

}  // namespace dstune
