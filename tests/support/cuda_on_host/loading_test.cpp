// Kernels are loaded at their first launch: what that takes, and what it waits for.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace loading_test {
namespace {

using cuda_on_host::check;
using cuda_on_host::loaded_kernels;
using cuda_on_host::TestStream;

constexpr std::size_t kBytes = 1000;
constexpr std::size_t kKernel = 400;

__global__ void first() {}
__global__ void second() {}
__global__ void third() {}

class Loading : public testing::Test {
 protected:
  Loading() { cuda_on_host::set_up({.devices = 2, .bytes = kBytes, .kernel_bytes = kKernel}); }
  ~Loading() override { cuda_on_host::set_up({}); }

  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total));
    return free;
  }
};

TEST_F(Loading, takes_memory_of_each_device_at_a_kernels_first_launch_there) {
  for (const int device : {0, 1}) {
    check(cudaSetDevice(device));
    const TestStream stream;
    EXPECT_EQ(free_bytes(), kBytes);
    stream.launch(1, 1, first);
    stream.launch(1, 1, first);
    EXPECT_EQ(free_bytes(), kBytes - kKernel);
    stream.launch(1, 1, second);
    EXPECT_EQ(free_bytes(), kBytes - 2 * kKernel);
  }
}

TEST_F(Loading, fails_on_a_full_device_and_succeeds_when_there_is_room) {
  const TestStream stream;
  char* most = nullptr;
  check(cudaMalloc(&most, kBytes - kKernel + 1));
  cudaLaunchConfig_t config{};
  config.stream = stream.get();

  EXPECT_EQ(cudaLaunchKernelEx(&config, first), cudaErrorMemoryAllocation);

  check(cudaFree(most));
  EXPECT_EQ(cudaLaunchKernelEx(&config, first), cudaSuccess);
}

TEST_F(Loading, is_told_by_the_kernels_names_in_order) {
  const std::string here = "loading_test::(anonymous namespace)::";
  const TestStream stream;

  stream.launch(1, 1, second);
  stream.launch(1, 1, first);
  stream.launch(1, 1, second);

  EXPECT_EQ(loaded_kernels(0), (std::vector{here + "second", here + "first"}));
  EXPECT_EQ(loaded_kernels(1), std::vector<std::string>{});
}

// A program that counts on a launch to return while another stream waits for it would stand still.
TEST_F(Loading, waits_for_the_streams_of_its_device) {
  const TestStream busy;
  const TestStream other;
  other.launch(1, 1, first);
  cuda_on_host::hang_at("cudaMemsetAsync", 1);
  check(cudaMemsetAsync(nullptr, 0, 0, busy.get()));
  std::atomic<bool> released = false;

  other.launch(1, 1, first);
  EXPECT_EQ(cudaStreamQuery(busy.get()), cudaErrorNotReady) << "what is loaded waits for nothing";
  std::thread releases([&] {
    while (loaded_kernels(0).size() < 2) std::this_thread::yield();
    released = true;
    cuda_on_host::release_hangs();
  });
  other.launch(1, 1, second);

  EXPECT_TRUE(released);
  EXPECT_EQ(cudaStreamQuery(busy.get()), cudaSuccess);
  releases.join();
}

TEST_F(Loading, waits_for_nothing_where_it_takes_nothing) {
  cuda_on_host::set_up({});
  const TestStream busy;
  const TestStream other;
  cuda_on_host::hang_at("cudaMemsetAsync", 1);
  check(cudaMemsetAsync(nullptr, 0, 0, busy.get()));

  other.launch(1, 1, third);

  EXPECT_EQ(cudaStreamQuery(busy.get()), cudaErrorNotReady);
  cuda_on_host::release_hangs();
}

}  // namespace
}  // namespace loading_test
