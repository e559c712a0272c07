// The control plane of one experiment, as its ranks see it.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace dstune {

/// Thrown if the dispatcher has ended the experiment (time limit, a lost member, the end of the
/// run), or if the group can no longer work. The rank drops the group and goes back to idle.
class ExperimentAborted : public Error {
 public:
  using Error::Error;
};

/// Calls are collective over the group, except for poll(). All of them throw ExperimentAborted when
/// the dispatcher says so: nobody waits forever for a member that died.
class Group {
 public:
  virtual ~Group() = default;

  virtual int rank() const = 0;  ///< 0 <= rank < size
  virtual int size() const = 0;

  /// By group rank: the member's rank in MPI_COMM_WORLD, or where there is none its group rank.
  virtual std::vector<int> members() const {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  /// This rank in messages to the user, "rank 3", with the number that mpirun knows where that is
  /// another one.
  virtual std::string name_of_this_rank() const { return concat("rank ", rank()); }

  /// Every rank gets the bytes of `root`; the length is the same on every rank.
  virtual void broadcast(std::span<std::byte> data, int root) = 0;

  /// True on every rank if `ok` is true on every rank.
  virtual bool vote(bool ok) = 0;

  /// The texts of all ranks, by rank, on group rank 0; empty elsewhere.
  virtual std::vector<std::string> gather(const std::string& text) = 0;

  /// Sends the heartbeat if it is due, and obeys an order of the dispatcher. It is cheap and may be
  /// called often.
  /// often.
  /// @throws ExperimentAborted
  virtual void poll() = 0;
};

}  // namespace dstune
