// A warp's matrix instructions on the host: which lane has what.
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <warp_instructions.cuh>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace warp_instructions_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

// sums (16, 8) = a (16, 16) b, with b (16, 8) or its transposed (8, 16).
template <bool transposed>
__global__ void multiply(const __half* a, const __half* b, float* sums) {
  const unsigned lane = threadIdx.x;
  std::uint32_t left[4];
  std::uint32_t right[4];
  dstune::cuda::load_matrices(left, a + lane % 16 * 16 + lane / 16 * 8);
  if (transposed) {
    dstune::cuda::load_matrices(right, b + lane % 8 * 16 + lane / 8 % 2 * 8);
  } else {
    dstune::cuda::load_transposed(right, b + lane % 16 * 8);
  }
  float own[4] = {};
  dstune::cuda::multiply_add<__half>(own, left, right[0], right[1]);
  for (unsigned i = 0; i < 4; ++i) sums[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = own[i];
}

template <bool transposed>
void expect_product() {
  const TestStream stream;
  std::vector<__half> a;
  std::vector<__half> b;
  for (int i = 0; i < 256; ++i) a.emplace_back(static_cast<float>(i * 7 % 13 - 6));
  for (int i = 0; i < 128; ++i) b.emplace_back(static_cast<float>(i * 5 % 11 - 5));
  DeviceArray<__half> left(a);
  DeviceArray<__half> right(b);
  DeviceArray<float> sums(128);

  stream.launch(1, 32, multiply<transposed>, left.data(), right.data(), sums.data());

  stream.synchronise();
  const auto result = sums.values();
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float expected = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        expected +=
            float(a[row * 16 + k]) * float(b[transposed ? column * 16 + k : k * 8 + column]);
      }
      ASSERT_EQ(result[row * 8 + column], expected) << row << ", " << column;
    }
  }
}

TEST(WarpInstructions, multiply_matrices_in_shared_memory) { expect_product<false>(); }

TEST(WarpInstructions, multiply_by_a_transposed_matrix) { expect_product<true>(); }

__global__ void copy(const float* from, float* before, float* after) {
  __shared__ float shared[32];
  shared[threadIdx.x] = -1;
  dstune::cuda::copy_async<4>(shared + threadIdx.x, from + threadIdx.x, threadIdx.x != 3);
  before[threadIdx.x] = shared[threadIdx.x];
  dstune::cuda::wait_for_copies();
  after[threadIdx.x] = shared[threadIdx.x];
}

TEST(WarpInstructions, copies_are_there_once_they_were_waited_for) {
  const TestStream stream;
  DeviceArray<float> from(std::vector<float>(32, 5));
  DeviceArray<float> before(32);
  DeviceArray<float> after(32);

  stream.launch(1, 32, copy, from.data(), before.data(), after.data());

  stream.synchronise();
  EXPECT_EQ(before.values(), std::vector<float>(32, -1));
  std::vector<float> expected(32, 5);
  expected[3] = 0;
  EXPECT_EQ(after.values(), expected);
}

}  // namespace
}  // namespace warp_instructions_test
