#include "mpi/collectives/transfers.hpp"

#include <algorithm>

#include "mpi/base/check.hpp"
#include "mpi/base/waiting.hpp"

namespace dstune {

namespace {

constexpr int kTag = 1;

}  // namespace

Transfers::Transfers(MPI_Comm communicator, std::function<void()> poll)
    : communicator_(communicator),
      poll_(std::move(poll)),
      memory_(std::make_unique<std::byte[]>(kSlots * kSlotSize)) {
  requests_.fill(MPI_REQUEST_NULL);
}

Transfers::~Transfers() {
  const bool done = std::all_of(requests_.begin(), requests_.end(),
                                [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
  if (!done) (void)memory_.release();
}

void Transfers::send(int slot, std::size_t size, int to) {
  DSTUNE_MPI_CHECK(MPI_Isend(this->slot(slot), static_cast<int>(size), MPI_BYTE, to, kTag,
                             communicator_, request(slot)));
}

void Transfers::receive(int slot, std::size_t size, int from) {
  DSTUNE_MPI_CHECK(MPI_Irecv(this->slot(slot), static_cast<int>(size), MPI_BYTE, from, kTag,
                             communicator_, request(slot)));
}

void Transfers::all_reduce(int slot, int count, MPI_Datatype type, MPI_Op op) {
  DSTUNE_MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, this->slot(slot), count, type, op, communicator_,
                                  request(slot)));
}

void Transfers::broadcast(int slot, std::size_t size, int root) {
  DSTUNE_MPI_CHECK(MPI_Ibcast(this->slot(slot), static_cast<int>(size), MPI_BYTE, root,
                              communicator_, request(slot)));
}

void Transfers::wait(int slot) {
  for (Yield yield;; yield.pause()) {
    int done = 0;
    DSTUNE_MPI_CHECK(MPI_Test(request(slot), &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    poll_();
  }
}

void Transfers::wait_all() {
  for (int slot = 0; slot < kSlots; ++slot) wait(slot);
}

}  // namespace dstune
