#include "mpi/base/placement.hpp"

#include "mpi/base/check.hpp"

namespace dstune {

namespace {

struct CommunicatorTraits {
  using Handle = MPI_Comm;
  static Handle null() noexcept { return MPI_COMM_NULL; }
  static void close(Handle handle) noexcept { MPI_Comm_free(&handle); }
};

}  // namespace

Placement find_placement(const Communicator& world) {
  MPI_Comm handle = MPI_COMM_NULL;
  DSTUNE_MPI_CHECK(
      MPI_Comm_split_type(world.get(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &handle));
  const UniqueHandle<CommunicatorTraits> host(handle);
  int rank = 0;
  int size = 0;
  DSTUNE_MPI_CHECK(MPI_Comm_rank(host.get(), &rank));
  DSTUNE_MPI_CHECK(MPI_Comm_size(host.get(), &size));
  int first = world.rank();
  DSTUNE_MPI_CHECK(MPI_Bcast(&first, 1, MPI_INT, 0, host.get()));
  // MPI_Comm_split_type sorts by the key, so that rank 0 comes first on its host.
  const int tuners = first == 0 ? 1 : 0;
  return {.rank = world.rank(),
          .local_rank = rank - tuners,
          .local_size = size - tuners,
          .is_one_host = size == world.size(),
          .shares_gpu = false,
          .is_worker = world.rank() != 0};
}

}  // namespace dstune
