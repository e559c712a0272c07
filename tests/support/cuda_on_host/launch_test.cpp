// Kernels on the host: grids, barriers, shuffles, shared memory and arguments.
#include <numeric>
#include <vector>

#include <cuda_runtime.h>
#include <dynamic_shared.cuh>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace launch_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < static_cast<unsigned>(count)) sum[i] = a[i] + b[i];
}

TEST(Launch, runs_every_thread_of_every_block_once) {
  const TestStream stream;
  std::vector<float> a(1000);
  std::iota(a.begin(), a.end(), 1.0F);
  const DeviceArray<float> first(a);
  const DeviceArray<float> second(a);
  DeviceArray<float> sum(1000);

  stream.launch(8, 128, add, first.data(), second.data(), sum.data(), 1000);

  stream.synchronise();
  const auto result = sum.values();
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(result[static_cast<std::size_t>(i)], 2.0F * static_cast<float>(i + 1));
}

__global__ void block_sum(const int* values, int* sums) {
  __shared__ int partial[256];
  const unsigned t = threadIdx.x;
  partial[t] = values[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}

TEST(Launch, threads_of_a_block_meet_at_barriers_and_share_memory) {
  const TestStream stream;
  std::vector<int> values(768);
  std::iota(values.begin(), values.end(), 0);
  const DeviceArray<int> input(values);
  DeviceArray<int> sums(3);

  stream.launch(3, 256, block_sum, input.data(), sums.data());

  stream.synchronise();
  EXPECT_EQ(sums.values(), (std::vector<int>{32640, 98176, 163712}));
}

__global__ void shuffles(int* xor_sums, int* shifted, unsigned* votes) {
  const int t = static_cast<int>(threadIdx.x);
  int sum = t;
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, mask);
  xor_sums[t] = sum;
  shifted[t] = __shfl_down_sync(0xffffffffU, t, 3, 16);
  votes[t] = __ballot_sync(0xffffffffU, t % 3 == 0);
}

TEST(Launch, lanes_of_a_warp_shuffle_and_vote) {
  const TestStream stream;
  const DeviceArray<int> sums(64);
  const DeviceArray<int> shifted(64);
  const DeviceArray<unsigned> votes(64);

  stream.launch(1, 64, shuffles, sums.data(), shifted.data(), votes.data());

  stream.synchronise();
  for (std::size_t t = 0; t < 64; ++t) {
    ASSERT_EQ(sums.values()[t], t < 32 ? 496 : 1520);
    ASSERT_EQ(shifted.values()[t], static_cast<int>(t % 16 < 13 ? t + 3 : t));
    unsigned wanted = 0;
    for (std::size_t lane = 0; lane < 32; ++lane)
      wanted |= (t / 32 * 32 + lane) % 3 == 0 ? 1U << lane : 0U;
    ASSERT_EQ(votes.values()[t], wanted);
  }
}

__global__ void halves(int* results) {
  const int t = static_cast<int>(threadIdx.x);
  const unsigned mask = t < 16 ? 0xffffU : 0xffff0000U;
  results[t] = t < 16 ? __shfl_sync(mask, t, 5) : __shfl_sync(mask, -t, 20);
}

TEST(Launch, parts_of_a_warp_shuffle_apart) {
  const TestStream stream;
  const DeviceArray<int> results(32);
  stream.launch(1, 32, halves, results.data());
  stream.synchronise();
  for (std::size_t t = 0; t < 32; ++t) ASSERT_EQ(results.values()[t], t < 16 ? 5 : -20);
}

__global__ void early_exit(int* count) {
  if (threadIdx.x % 2 == 0) return;
  __syncthreads();
  const int voters = __syncthreads_count(threadIdx.x < 4);
  if (threadIdx.x == 7) *count = voters;
}

TEST(Launch, threads_that_returned_are_not_waited_for) {
  const TestStream stream;
  const DeviceArray<int> count(1);
  stream.launch(1, 8, early_exit, count.data());
  stream.synchronise();
  EXPECT_EQ(count.values()[0], 2);
}

__global__ void reverse(const int* in, int* out) {
  DSTUNE_DYNAMIC_SHARED(int, shared);
  shared[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

cudaError_t launch_reverse(cudaStream_t stream, const DeviceArray<int>& in, std::size_t bytes) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(4);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, reverse, in.data(), in.data());
}

TEST(Launch, dynamic_shared_memory_is_a_blocks_own) {
  const TestStream stream;
  const DeviceArray<int> data(std::vector{1, 2, 3, 4});
  cuda_on_host::check(launch_reverse(stream.get(), data, 4 * sizeof(int)));
  stream.synchronise();
  EXPECT_EQ(data.values(), (std::vector{4, 3, 2, 1}));
}

__global__ void where(int* counts) {
  atomicAdd(&counts[threadIdx.z * 6 + threadIdx.y * 3 + threadIdx.x], 1);
}

TEST(Launch, grids_and_blocks_have_three_dimensions) {
  const TestStream stream;
  const DeviceArray<int> counts(12);
  stream.launch(dim3(2, 2), dim3(3, 2, 2), where, counts.data());
  stream.synchronise();
  EXPECT_EQ(counts.values(), std::vector<int>(12, 4));
}

__global__ void divergent() {
  if (threadIdx.x == 0) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

TEST(LaunchDeathTest, threads_that_wait_for_one_another_for_ever_are_reported_with_the_kernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const TestStream stream;
        stream.launch(1, 32, divergent);
        stream.synchronise();
      },
      "kernel .*divergent: its threads wait for one another for ever: 1 of 32 at a barrier");
}

__global__ void reads_a_lane_that_is_not_there(int* out) {
  *out = __shfl_down_sync(0xffffffffU, 1, 16);
}

TEST(LaunchDeathTest, a_shuffle_from_a_lane_that_is_not_there_is_reported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const TestStream stream;
        const DeviceArray<int> out(1);
        stream.launch(1, 16, reads_a_lane_that_is_not_there, out.data());
        stream.synchronise();
      },
      "a shuffle reads from lane .*, which does not take part");
}

/// Its threads read what their neighbours above write, without a barrier between.
__global__ void take_from_next(int* taken) {
  __shared__ int values[64];
  const unsigned t = threadIdx.x;
  values[t] = 0;
  __syncthreads();
  values[t] = 1;
  taken[t] = values[(t + 1) % blockDim.x];
}

/// Its blocks count on those before them.
__global__ void add_before(int* sums) {
  if (threadIdx.x == 0) sums[blockIdx.x + 1] = sums[blockIdx.x] + 1;
}

int sum_taken(cuda_on_host::Order order) {
  cuda_on_host::begin_in(order);
  const TestStream stream;
  DeviceArray<int> taken(64);
  stream.launch(1, 64, take_from_next, taken.data());
  stream.synchronise();
  cuda_on_host::begin_in(cuda_on_host::Order::ascending);
  const auto values = taken.values();
  return std::accumulate(values.begin(), values.end(), 0);
}

TEST(Launch, shows_a_missing_barrier_by_the_order_of_threads) {
  const int ascending = sum_taken(cuda_on_host::Order::ascending);
  const int descending = sum_taken(cuda_on_host::Order::descending);
  const int shuffled = sum_taken(cuda_on_host::Order::shuffled);

  EXPECT_EQ(ascending, 1);    // of the last, whose next is the first
  EXPECT_EQ(descending, 63);  // of all but the last
  EXPECT_NE(shuffled, ascending);
  EXPECT_NE(shuffled, descending);
}

TEST(Launch, shows_what_depends_on_the_order_of_blocks) {
  for (const auto order : {cuda_on_host::Order::ascending, cuda_on_host::Order::descending}) {
    cuda_on_host::begin_in(order);
    const TestStream stream;
    DeviceArray<int> sums(std::vector<int>(9, 0));
    stream.launch(8, 32, add_before, sums.data());
    stream.synchronise();
    EXPECT_EQ(sums.values()[8], order == cuda_on_host::Order::ascending ? 8 : 1);
  }
  cuda_on_host::begin_in(cuda_on_host::Order::ascending);
}

}  // namespace
}  // namespace launch_test
