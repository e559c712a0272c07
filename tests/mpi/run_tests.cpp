#include "tests/mpi/run_tests.hpp"

#include <iostream>

#include <gtest/gtest.h>
#include <mpi.h>

namespace dstune::test {

namespace {

class FailuresOfOneRank : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOfOneRank(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.passed() || result.skipped()) return;
    std::cerr << "[rank " << rank_ << "] " << result.file_name() << ":" << result.line_number()
              << ": " << result.message() << std::endl;
  }

 private:
  int rank_;
};

}  // namespace

int run_tests_on_ranks() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOfOneRank(rank));
  }
  const int mine = RUN_ALL_TESTS();
  int worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return worst;
}

}  // namespace dstune::test
