// The two halves of a ring algorithm, for one piece per rank of at most Transfers::kSlotSize bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "mpi/collectives/combine.hpp"
#include "mpi/collectives/transfers.hpp"

namespace dstune {

/// Moves the parts of a tensor around a ring of ranks. `part(p)` is the p-th part of this rank's
/// data, 0 <= p < size.
class Ring {
 public:
  /// @param members  the ring's ranks, as `transfers` numbers them; they must outlive this
  /// @param rank     this rank's place among them
  Ring(Transfers& transfers, const std::vector<int>& members, int rank)
      : transfers_(&transfers),
        members_(&members),
        rank_(rank),
        size_(static_cast<int>(members.size())) {}

  int wrap(int part) const { return ((part % size_) + size_) % size_; }

  /// Combines the parts of all ranks. This rank gets the combined part `owned`, which must be the
  /// left neighbour's plus one. The parts themselves are only read.
  /// @returns the slot that holds the result
  template <class PartOf>
  int reduce(PartOf part, int owned, ReduceOp op) {
    int sending = 0;
    int receiving = 1;
    const Tensor first = part(wrap(owned - 1));
    std::memcpy(transfers_->slot(sending), first.data, first.size());
    for (int step = 0; step < size_ - 1; ++step) {
      const Tensor mine = part(wrap(owned - 2 - step));
      shift(sending, part(wrap(owned - 1 - step)).size(), receiving, mine.size());
      combine(op, mine, Tensor{transfers_->slot(receiving), mine.numel, mine.dtype});
      std::swap(sending, receiving);
    }
    return sending;
  }

  /// Fills in every part but `owned` on every rank; the rank's own part `owned` must be in `slot`.
  template <class PartOf>
  void gather(PartOf part, int owned, int slot) {
    int sending = slot;
    int receiving = slot == 0 ? 1 : 0;
    for (int step = 0; step < size_ - 1; ++step) {
      const Tensor theirs = part(wrap(owned - step - 1));
      shift(sending, part(wrap(owned - step)).size(), receiving, theirs.size());
      std::memcpy(theirs.data, transfers_->slot(receiving), theirs.size());
      std::swap(sending, receiving);
    }
  }

 private:
  void shift(int sending, std::size_t send_size, int receiving, std::size_t receive_size) {
    transfers_->receive(receiving, receive_size, member(rank_ - 1));
    transfers_->send(sending, send_size, member(rank_ + 1));
    transfers_->wait(receiving);
    transfers_->wait(sending);
  }

  int member(int place) const { return (*members_)[static_cast<std::size_t>(wrap(place))]; }

  Transfers* transfers_;
  const std::vector<int>* members_;
  int rank_;
  int size_;
};

}  // namespace dstune
