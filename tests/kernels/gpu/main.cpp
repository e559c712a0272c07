// The main() of tests that need a GPU: without one they are skipped, and so are the tests of more
// ranks than there are GPUs, which have RanksN in their names.
#include <iostream>
#include <string>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

constexpr int kSkipped = 77;
constexpr int kMostRanks = 8;

/// What GoogleTest's filter `chosen` leaves of the tests that so many GPUs can run. All after its
/// first "-" is left out.
std::string narrowed(const std::string& chosen, int gpus) {
  if (chosen.empty()) return chosen;
  std::string filter = chosen;
  char before = chosen.find('-') == std::string::npos ? '-' : ':';
  for (int ranks = gpus + 1; ranks <= kMostRanks; ++ranks) {
    filter += before + ("*Ranks" + std::to_string(ranks) + "*");
    before = ':';
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
  GTEST_FLAG_SET(filter, narrowed(GTEST_FLAG_GET(filter), gpus));
  const int failed = RUN_ALL_TESTS();
  if (::testing::UnitTest::GetInstance()->test_to_run_count() > 0) return failed;
  std::cout << "skipped: every test needs more GPUs than " << gpus << "\n";
  return kSkipped;
}
