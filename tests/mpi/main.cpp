// The main() of tests under mpirun.
#include <gtest/gtest.h>

#include "mpi/base/environment.hpp"
#include "tests/mpi/run_tests.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const dstune::Environment environment(&argc, &argv);
  return dstune::test::run_tests_on_ranks();
}
