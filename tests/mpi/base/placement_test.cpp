#include "mpi/base/placement.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace dstune::placement_test {
namespace {

TEST(FindPlacement, WorkersOfAHostAreCountedWithoutTheTuner) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);

  const Placement own = find_placement(world);

  EXPECT_EQ(own.rank, world.rank());
  EXPECT_EQ(own.local_rank, world.rank() - 1);
  EXPECT_EQ(own.local_size, world.size() - 1);
  EXPECT_TRUE(own.is_one_host);
  EXPECT_EQ(own.is_worker, own.rank != 0);
  EXPECT_FALSE(own.shares_gpu);
}

// Not that in which the processes were started.
TEST(FindPlacement, TheOrderIsThatOfTheWorld) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  std::vector<int> reversed;
  for (int rank = world.size() - 1; rank >= 0; --rank) reversed.push_back(rank);
  const auto other = Communicator::create(reversed, 10);

  const Placement own = find_placement(other);

  EXPECT_EQ(own.local_rank, other.rank() - 1);
  EXPECT_EQ(own.rank, world.size() - 1 - world.rank());
}

}  // namespace
}  // namespace dstune::placement_test
