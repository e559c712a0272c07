// The ranks of one experiment, as a communicator of their own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/group.hpp"
#include "mpi/base/communicator.hpp"
#include "mpi/collectives/transfers.hpp"
#include "mpi/lifeline/worker_link.hpp"

namespace dstune {

/// The group of one experiment. Every wait looks at rank 0's orders and keeps the heartbeat going.
/// Once a call has thrown, the group can no longer be used, because its ranks disagree about which
/// transfers are under way.
class MpiGroup final : public Group {
 public:
  /// Collective over the world's `ranks`, after rank 0's go (Communicator::create).
  MpiGroup(const std::vector<int>& ranks, int tag, WorkerLink& link);
  /// The destructor is not collective: it gives the communicator up, because the other ranks may be
  /// busy elsewhere.
  ~MpiGroup() override { communicator_.abandon(); }
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  std::vector<int> members() const override { return members_; }
  std::string name_of_this_rank() const override;  ///< its rank in MPI_COMM_WORLD
  void broadcast(std::span<std::byte> data, int root) override;
  bool vote(bool ok) override;
  std::vector<std::string> gather(const std::string& text) override;
  void poll() override { link_->poll(); }

  /// The transfers by which collectives reach the other ranks.
  Transfers& transfers() noexcept { return transfers_; }

 private:
  std::string receive_text(int from);
  void send_text(const std::string& text);

  Communicator communicator_;
  std::vector<int> members_;  // ranks in the world
  WorkerLink* link_;
  Transfers transfers_;
};

/// Holds a worker's groups by tag. Rank 0 keeps the list of the groups that are still used
/// (GroupDirectory).
class GroupCache {
 public:
  explicit GroupCache(WorkerLink& link) : link_(&link) {}

  /// The group of `tag`. If it is new, it is made now, which is collective over `ranks`.
  MpiGroup& get(int tag, const std::vector<int>& ranks);
  void drop(int tag) { groups_.erase(tag); }

 private:
  WorkerLink* link_;
  std::map<int, std::unique_ptr<MpiGroup>> groups_;
};

}  // namespace dstune
