// The main() of tests that need a GPU: without one they are skipped, and so are the tests of more
// ranks than there are GPUs, which have RanksN in their names.
#include <iostream>
#include <string>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

constexpr int kSkipped = 77;
constexpr int kMostRanks = 8;

std::string tests_for(int gpus) {
  std::string filter = "*-";
  for (int ranks = gpus + 1; ranks <= kMostRanks; ++ranks) {
    filter += "*Ranks" + std::to_string(ranks) + "*:";
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess || gpus == 0) {
    std::cout << "skipped: no GPU (" << cudaGetErrorString(error) << ")\n";
    return kSkipped;
  }
  if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, tests_for(gpus));
  const int failed = RUN_ALL_TESTS();
  if (::testing::UnitTest::GetInstance()->test_to_run_count() > 0) return failed;
  std::cout << "skipped: every test needs more GPUs than " << gpus << "\n";
  return kSkipped;
}
