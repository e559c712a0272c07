// The main() of tests of several ranks on a GPU: without one they are skipped.
#include <iostream>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "mpi/base/communicator.hpp"
#include "mpi/base/environment.hpp"
#include "tests/mpi/run_tests.hpp"

namespace {

constexpr int kSkipped = 77;
// Processes that share a GPU take turns on it: collectives are slow.
constexpr const char* kShort = "SharedGpu.*:*/1_fp32:*/2_bf16:*/3_fp16:*/4_fp32";

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const dstune::Environment environment(&argc, &argv);
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus > 0) {
    if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, kShort);
    return dstune::test::run_tests_on_ranks();
  }
  std::cout << "skipped: no GPU (" << cudaGetErrorString(error) << ")\n";
  return kSkipped;
}
