#include "mpi/base/communicator.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "mpi/base/check.hpp"

namespace dstune::communicator_test {
namespace {

TEST(Communicator, DuplicateHasTheSameRanks) {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  const auto copy = Communicator::duplicate(MPI_COMM_WORLD);

  EXPECT_NE(copy.get(), MPI_COMM_WORLD);
  EXPECT_EQ(copy.rank(), rank);
}

TEST(Communicator, FailedCallThrowsWithCallReasonAndPlace) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  int value = 0;

  const auto send_to_nobody = [&] {
    DSTUNE_MPI_CHECK(MPI_Send(&value, 1, MPI_INT, world.size(), 0, world.get()));
  };

  try {
    send_to_nobody();
    FAIL() << "no such rank";
  } catch (const MpiError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("MPI_Send failed: "), 0U) << text;
    EXPECT_NE(text.find("nvalid rank"), std::string::npos) << text;  // each MPI in its own words
    EXPECT_NE(text.find("communicator_test.cpp:"), std::string::npos) << text;
  }
}

TEST(Communicator, CreatedInTheOrderOfItsList) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  std::vector<int> reversed(static_cast<std::size_t>(world.size()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);

  const auto group = Communicator::create(reversed, 10);

  EXPECT_EQ(group.size(), world.size());
  EXPECT_EQ(group.rank(), world.size() - 1 - world.rank());
}

TEST(Communicator, RanksOutsideTheGroupTakeNoPart) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  std::vector<int> all_but_first(static_cast<std::size_t>(world.size() - 1));
  std::iota(all_but_first.begin(), all_but_first.end(), 1);
  if (world.rank() == 0) return;

  const auto group = Communicator::create(all_but_first, 9);

  EXPECT_EQ(group.rank(), world.rank() - 1);
}

}  // namespace
}  // namespace dstune::communicator_test
