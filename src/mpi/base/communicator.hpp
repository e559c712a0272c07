// An MPI communicator of our own, with errors returned and then thrown.
#pragma once

#include <vector>

#include <mpi.h>

#include "core/base/unique_handle.hpp"

namespace dstune {

/// Owns an MPI_Comm. The destructor frees it, which is collective over its ranks.
class Communicator {
 public:
  /// Collective over `parent`. @throws MpiError
  static Communicator duplicate(MPI_Comm parent);

  /// Collective over exactly `ranks` of MPI_COMM_WORLD (their order = order in the new
  /// communicator), which must all be alive: it blocks for ever if one is not. `tag` must be the
  /// same on all of them and lower than every tag before it, so that a call that hangs does not
  /// block later ones. No rank may receive with MPI_ANY_TAG on MPI_COMM_WORLD at that time, because
  /// Open MPI's own messages for this call carry `tag`.
  /// @throws MpiError
  static Communicator create(const std::vector<int>& ranks, int tag);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  MPI_Comm get() const noexcept { return handle_.get(); }

  /// Gives the handle up without freeing it, for when some of its ranks may not be there to free it
  /// too. This leaks 8 kB.
  void abandon() noexcept { (void)handle_.release(); }

 private:
  struct Traits {
    using Handle = MPI_Comm;
    static Handle null() noexcept { return MPI_COMM_NULL; }
    static void close(Handle handle) noexcept { MPI_Comm_free(&handle); }
  };

  explicit Communicator(MPI_Comm handle);

  UniqueHandle<Traits> handle_;
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace dstune
