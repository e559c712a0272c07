#include "mpi/pool/worker_loop.hpp"

#include <gtest/gtest.h>

#include "tests/mpi/pool/pool_support.hpp"

namespace dstune::worker_loop_test {
namespace {

using test::count_members;

TEST(BroadcastStop, EndsEveryWorkerWithoutAPool) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);

  LoopResult result = LoopResult::finished;
  if (world.rank() == 0) {
    broadcast_stop(world);
  } else {
    result = run_worker_loop(world, WorkerOptions{}, count_members);
  }

  EXPECT_EQ(result, LoopResult::finished);
}

TEST(WorkerLoop, EndsOrphanedWhenRankZeroIsSilent) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  WorkerOptions options;
  options.lease = 0.05;

  LoopResult result = LoopResult::cut_off;
  if (world.rank() != 0) result = run_worker_loop(world, options, count_members);

  EXPECT_EQ(result, LoopResult::cut_off);
}

}  // namespace
}  // namespace dstune::worker_loop_test
