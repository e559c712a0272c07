#include "mpi/base/communicator.hpp"

#include "mpi/base/check.hpp"

namespace dstune {

namespace {

struct GroupTraits {
  using Handle = MPI_Group;
  static Handle null() noexcept { return MPI_GROUP_NULL; }
  static void close(Handle handle) noexcept { MPI_Group_free(&handle); }
};

}  // namespace

Communicator::Communicator(MPI_Comm handle) : handle_(handle) {
  DSTUNE_MPI_CHECK(MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN));
  DSTUNE_MPI_CHECK(MPI_Comm_rank(handle, &rank_));
  DSTUNE_MPI_CHECK(MPI_Comm_size(handle, &size_));
}

Communicator Communicator::duplicate(MPI_Comm parent) {
  DSTUNE_MPI_CHECK(MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN));
  MPI_Comm handle = MPI_COMM_NULL;
  DSTUNE_MPI_CHECK(MPI_Comm_dup(parent, &handle));
  return Communicator(handle);
}

Communicator Communicator::create(const std::vector<int>& ranks, int tag) {
  DSTUNE_MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Group all = MPI_GROUP_NULL;
  DSTUNE_MPI_CHECK(MPI_Comm_group(MPI_COMM_WORLD, &all));
  const UniqueHandle<GroupTraits> all_owner(all);
  MPI_Group members = MPI_GROUP_NULL;
  DSTUNE_MPI_CHECK(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &members));
  const UniqueHandle<GroupTraits> members_owner(members);
  MPI_Comm handle = MPI_COMM_NULL;
  DSTUNE_MPI_CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, &handle));
  return Communicator(handle);
}

}  // namespace dstune
