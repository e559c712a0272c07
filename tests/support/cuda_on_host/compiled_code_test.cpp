// Programs that were compiled for some GPUs, on all kinds.
#include "tests/support/cuda_on_host/compiled_code.hpp"

#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace compiled_code_test {
namespace {

using cuda_on_host::has_code_for;
using cuda_on_host::TestStream;

/// Of 7.0, 7.5, 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0, which run what is compiled so.
std::vector<int> gpus_of(const char* architectures) {
  std::vector<int> gpus;
  for (const int gpu : {70, 75, 80, 86, 89, 90, 100, 120}) {
    if (has_code_for(architectures, gpu / 10, gpu % 10)) gpus.push_back(gpu);
  }
  return gpus;
}

TEST(CompiledCode, runs_on_gpus_of_its_generation_that_are_not_older) {
  EXPECT_EQ(gpus_of("70-real"), (std::vector{70, 75}));
  EXPECT_EQ(gpus_of("75-real"), (std::vector{75}));
  EXPECT_EQ(gpus_of("80-real"), (std::vector{80, 86, 89}));
  EXPECT_EQ(gpus_of("86-real;100-real"), (std::vector{86, 89, 100}));
  EXPECT_EQ(gpus_of("86f"), (std::vector{86, 89}));
}

TEST(CompiledCode, as_ptx_runs_on_every_gpu_that_is_not_older) {
  EXPECT_EQ(gpus_of("89-virtual"), (std::vector{89, 90, 100, 120}));
  EXPECT_EQ(gpus_of("75-real;90"), (std::vector{75, 90, 100, 120}));
}

TEST(CompiledCode, of_one_gpu_alone_runs_there) { EXPECT_EQ(gpus_of("90a"), (std::vector{90})); }

TEST(CompiledCodeDeathTest, of_what_is_no_architecture_is_reported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(has_code_for("90-reel", 9, 0), "no architecture of CMake: 90-reel");
  EXPECT_DEATH(has_code_for("all", 9, 0), "no architecture of CMake: all");
}

__global__ void nothing() {}

cudaError_t launch_on(int major, int minor) {
  cuda_on_host::set_up({.major = major, .minor = minor, .architectures = "80-real;90-real"});
  const TestStream stream;
  cudaLaunchConfig_t config{};
  config.stream = stream.get();
  return cudaLaunchKernelEx(&config, nothing);
}

TEST(CompiledCode, that_is_missing_fails_each_launch_and_look_at_a_kernel) {
  EXPECT_EQ(launch_on(8, 6), cudaSuccess);
  EXPECT_EQ(launch_on(12, 0), cudaErrorNoKernelImageForDevice);

  cudaFuncAttributes attributes{};
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, nothing), cudaErrorNoKernelImageForDevice);
  EXPECT_EQ(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 1),
            cudaErrorNoKernelImageForDevice);
  cuda_on_host::set_up({});
}

}  // namespace
}  // namespace compiled_code_test
