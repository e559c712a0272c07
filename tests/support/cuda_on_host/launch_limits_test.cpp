// What CUDA refuses to launch, by the compute capability.
#include <string>

#include <cuda_runtime.h>
#include <dynamic_shared.cuh>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace launch_limits_test {
namespace {

using cuda_on_host::check;
using cuda_on_host::TestStream;

constexpr int kKiB = 1024;

__global__ void nothing() {}

cudaError_t launch(dim3 grid, dim3 block, std::size_t shared_bytes = 0,
                   void (*kernel)() = nothing) {
  const TestStream stream;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream.get();
  return cudaLaunchKernelEx(&config, kernel);
}

class LaunchLimits : public testing::Test {
 protected:
  LaunchLimits() { cuda_on_host::set_up({}); }
  ~LaunchLimits() override { cuda_on_host::set_up({}); }
};

TEST_F(LaunchLimits, a_block_has_up_to_1024_threads_and_64_in_z) {
  EXPECT_EQ(launch(1, 1024), cudaSuccess);
  EXPECT_EQ(launch(1, dim3(1, 1024)), cudaSuccess);
  EXPECT_EQ(launch(1, dim3(1, 1, 64)), cudaSuccess);
  for (const dim3 block : {dim3(1025), dim3(1, 1025), dim3(1, 1, 65), dim3(32, 33), dim3(0),
                           dim3(32, 0), dim3(32, 1, 0)}) {
    EXPECT_EQ(launch(1, block), cudaErrorInvalidConfiguration) << block.x << " " << block.y;
  }
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
}

TEST_F(LaunchLimits, a_grid_has_up_to_65535_blocks_in_y_and_z) {
  EXPECT_EQ(launch(65536, 1), cudaSuccess);
  EXPECT_EQ(launch(dim3(1, 65535), 1), cudaSuccess);
  for (const dim3 grid :
       {dim3(0x80000000U), dim3(1, 65536), dim3(1, 1, 65536), dim3(0), dim3(1, 0), dim3(1, 1, 0)}) {
    EXPECT_EQ(launch(grid, 1), cudaErrorInvalidConfiguration) << grid.x << " " << grid.y;
  }
}

TEST_F(LaunchLimits, dynamic_shared_memory_above_48_KiB_is_asked_for_first) {
  EXPECT_EQ(launch(1, 1, 48 * kKiB), cudaSuccess);
  EXPECT_EQ(launch(1, 1, 48 * kKiB + 1), cudaErrorInvalidValue);
  check(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * kKiB));
  EXPECT_EQ(launch(1, 1, 100 * kKiB), cudaSuccess);
  EXPECT_EQ(launch(1, 1, 100 * kKiB + 1), cudaErrorInvalidValue);
}

TEST_F(LaunchLimits, the_most_shared_memory_is_that_of_the_compute_capability) {
  struct {
    int major, minor, kib;
  } const known[] = {{7, 0, 96},  {7, 5, 64},   {8, 0, 163},  {8, 6, 99},  {8, 9, 99},
                     {9, 0, 227}, {10, 0, 227}, {10, 3, 227}, {12, 0, 99}, {12, 1, 99}};
  for (const auto& gpu : known) {
    SCOPED_TRACE(std::to_string(gpu.major) + "." + std::to_string(gpu.minor));
    cuda_on_host::set_up({.major = gpu.major, .minor = gpu.minor});
    const int most = gpu.kib * kKiB;
    const auto ask = [](int bytes) {
      return cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    };
    int optin = 0;

    check(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));

    EXPECT_EQ(optin, most);
    EXPECT_EQ(ask(most + 1), cudaErrorInvalidValue);
    EXPECT_EQ(ask(most), cudaSuccess);
    EXPECT_EQ(launch(1, 1, static_cast<std::size_t>(most)), cudaSuccess);
  }
}

constexpr int kFew = 64;
constexpr int kMany = 1024;

__global__ void __launch_bounds__(kFew) for_few() {}
__global__ void __launch_bounds__(kMany, 1) for_many() {}
template <class T>
__global__ void __launch_bounds__(4 * 32) for_some() {}

TEST_F(LaunchLimits, a_kernel_has_no_more_threads_than_its_launch_bounds) {
  struct {
    void (*kernel)();
    unsigned most;
  } const known[] = {{for_few, 64}, {for_many, 1024}, {for_some<float>, 128}, {nothing, 1024}};
  for (const auto& one : known) {
    EXPECT_EQ(launch(1, one.most, 0, one.kernel), cudaSuccess);
    if (one.most < 1024) {
      EXPECT_EQ(launch(1, one.most + 32, 0, one.kernel), cudaErrorLaunchOutOfResources);
    }
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, one.kernel));
    EXPECT_EQ(attributes.maxThreadsPerBlock, static_cast<int>(one.most));
  }
}

TEST_F(LaunchLimits, occupancy_is_bounded_by_blocks_threads_and_shared_memory) {
  const auto blocks = [](int threads, std::size_t shared_bytes) {
    int count = -1;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, nothing, threads, shared_bytes));
    return count;
  };
  cuda_on_host::set_up({.major = 8, .minor = 6});

  EXPECT_EQ(blocks(32, 0), 16);
  EXPECT_EQ(blocks(512, 0), 3);
  EXPECT_EQ(blocks(128, 40 * kKiB), 2);
  EXPECT_EQ(blocks(128, 100 * kKiB), 0);
}

}  // namespace
}  // namespace launch_limits_test
