// Non-blocking transfers through slots: pieces of memory that outlive an aborted experiment.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include <mpi.h>

#include "mpi/base/communicator.hpp"

namespace dstune {

/// Moves data over one communicator. Everything is copied through the slots, because after an abort
/// MPI may still read or write what it was given: a transfer with a peer that died never ends and
/// cannot be cancelled. The slots of such a transfer are given up, never freed; the experiment's
/// own memory is never MPI's to touch.
class Transfers {
 public:
  static constexpr int kSlots = 4;
  static constexpr std::size_t kSlotSize = std::size_t{256} << 10U;

  /// @param poll  called while waiting; ends the wait by throwing
  Transfers(MPI_Comm communicator, std::function<void()> poll);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Aligned for every type; `slot` in [0, kSlots).
  std::byte* slot(int slot) const {
    return memory_.get() + static_cast<std::size_t>(slot) * kSlotSize;
  }

  /// One transfer at a time per slot: wait() before the next one. `size` <= kSlotSize.
  /// @throws MpiError
  void send(int slot, std::size_t size, int to);
  void receive(int slot, std::size_t size, int from);
  /// Collectives on the contents of a slot, `count` elements of `type`; receive into the same
  /// place.
  void all_reduce(int slot, int count, MPI_Datatype type, MPI_Op op);
  void broadcast(int slot, std::size_t size, int root);

  /// Until the slot's transfer is done; returns at once if there is none.
  /// @throws what poll throws, MpiError
  void wait(int slot);
  void wait_all();

 private:
  MPI_Request* request(int slot) { return &requests_.at(static_cast<std::size_t>(slot)); }

  MPI_Comm communicator_;
  std::function<void()> poll_;
  std::unique_ptr<std::byte[]> memory_;
  std::array<MPI_Request, kSlots> requests_;
};

}  // namespace dstune
