// A worker's connection to rank 0 through MPI: orders, heartbeat and lease.
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
  Seconds heartbeat = 2;  ///< the longest silence towards rank 0
  Seconds lease = 60;     ///< after so long without a message of rank 0 the worker gives it up
  std::vector<DeviceInfo> devices;  ///< the devices that the worker's backends found, for rank 0
  /// Called once, when rank 0 has said who it is.
  std::function<void(const WorkerInfo& self, const WorkerInfo& rank0)> met_rank0;
  /// Called once if rank 0 listens for this worker's lifeline.
  std::function<void(const LifelineAddress& rank0, int own_rank)> offered_lifeline;
  /// Called when rank 0 ends the run in order: from then on the end of rank 0's process is no
  /// death.
  std::function<void()> told_to_stop;
};

class WorkerLink {
 public:
  WorkerLink(const Communicator& world, const WorkerOptions& options);

  /// The rank of this process in `world`.
  int rank() const noexcept { return self_.rank; }
  /// The folder of the worker's control group of memory, or "".
  const std::string& group() const noexcept { return self_.oom_kills.group; }

  void say(MessageKind kind, const json::object& content = {});

  /// From begin() to end(), poll() ends the experiment `id` when rank 0 orders it, also by an order
  /// that came before begin() and is still to be fetched.
  void begin(std::uint64_t id);
  void end() noexcept { running_.reset(); }

  /// Sends a heartbeat if one is due and reads orders. A call is cheap, because it looks at most
  /// every 500 us.
  /// @throws ExperimentAborted  only between begin() and end()
  void poll();

  /// Reads messages, whenever the last look was. @returns the next order that poll() did not obey
  /// itself, if there is one
  std::optional<Message> next_order();

  /// True if rank 0 is dead.
  bool orphaned() const noexcept { return orphaned_; }
  /// True if rank 0 is dead, or was silent for longer than the lease.
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
  std::optional<int> rank0_pid_;  ///< none if rank 0's process cannot be seen from here
  Silence rank0_;
  Seconds last_look_ = 0;
  Seconds last_word_ = 0;
  bool orphaned_ = false;
  bool cut_off_ = false;
};

}  // namespace dstune
