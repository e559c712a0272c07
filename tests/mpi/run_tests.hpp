// gtest under mpirun, for main().
#pragma once

namespace dstune::test {

/// Runs all tests: rank 0 prints as usual, other ranks print failures only.
/// @returns the worst of all ranks' results
int run_tests_on_ranks();

}  // namespace dstune::test
