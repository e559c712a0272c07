// Non-blocking transfers through slots: pieces of memory that outlive an aborted experiment.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include <mpi.h>

#include "mpi/base/communicator.hpp"

namespace dstune {

/// Moves data over one communicator. All data is copied through the slots, because after an abort
/// MPI may still read or write the memory that it was given: a transfer with a peer that died never
/// ends and cannot be cancelled. The slots of such a transfer are leaked, never freed, and MPI
/// never touches the experiment's own memory.
class Transfers {
 public:
  static constexpr int kSlots = 4;
  static constexpr std::size_t kSlotSize = std::size_t{256} << 10U;

  /// @param poll  called again and again during a wait, which it ends by throwing
  Transfers(MPI_Comm communicator, std::function<void()> poll);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// The memory of `slot`, which is in [0, kSlots). It is aligned for every type.
  std::byte* slot(int slot) const {
    return memory_.get() + static_cast<std::size_t>(slot) * kSlotSize;
  }

  /// Begins to send or receive `size` <= kSlotSize bytes of a slot. A slot has one transfer at a
  /// time: call wait() before the next one.
  /// @throws MpiError
  void send(int slot, std::size_t size, int to);
  void receive(int slot, std::size_t size, int from);
  /// Begins a collective of MPI on the contents of a slot, which also receives the result; for
  /// all_reduce() these are `count` elements of `type`.
  void all_reduce(int slot, int count, MPI_Datatype type, MPI_Op op);
  void broadcast(int slot, std::size_t size, int root);

  /// Waits until the slot's transfer is done; returns at once if there is none.
  /// @throws MpiError, and whatever poll throws
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
