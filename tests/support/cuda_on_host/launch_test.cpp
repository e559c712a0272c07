// Kernels on the host: grids, barriers, shuffles, shared memory, arguments and what CUDA refuses.
#include <numeric>
#include <vector>

#include <cuda_runtime.h>
#include <dynamic_shared.cuh>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

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

}  // namespace
