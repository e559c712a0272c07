#include "kernels/cuda/attention/own.hpp"

#include <cmath>
#include <vector>

#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace dstune::cuda::own_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

AttentionShape shape_of(std::int64_t head_size) {
  return {.batch = 1,
          .sequence = 70,
          .heads = 2,
          .kv_heads = 2,
          .head_size = head_size,
          .dropout = 0.2,
          .seed = 3};
}

std::vector<__half> values(std::int64_t count, double step) {
  std::vector<__half> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.emplace_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
  }
  return result;
}

/// out and d_qkv on a GPU of this compute capability.
std::vector<__half> outcome(int major, int minor, std::int64_t head_size) {
  cuda_on_host::set_up({.major = major, .minor = minor});
  const TestStream stream;
  const AttentionShape shape = shape_of(head_size);
  const std::int64_t width = shape.heads * shape.head_size;
  const auto count = static_cast<std::size_t>(shape.sequence * width);
  DeviceArray<__half> qkv(values(3 * shape.sequence * width, 0.7));
  DeviceArray<__half> d_out(values(shape.sequence * width, 1.3));
  DeviceArray<__half> out(count);
  DeviceArray<__half> d_qkv(3 * count);
  DeviceArray<float> lse(static_cast<std::size_t>(shape.heads * shape.sequence));
  DeviceArray<float> workspace(static_cast<std::size_t>(own_attention_workspace(shape)));
  const auto matrix = [&](DeviceArray<__half>& array, std::int64_t cols) {
    return Matrix{array.data(), shape.sequence, cols, DType::fp16, cols};
  };
  const auto part = [&](DeviceArray<__half>& of, std::int64_t index) {
    return heads_in(matrix(of, 3 * width), index * width, shape.heads, shape.head_size);
  };
  const auto tensor = [&](DeviceArray<float>& array) {
    return Tensor{array.data(), shape.heads * shape.sequence, DType::fp32};
  };
  own_attention({.shape = shape,
                 .q = part(qkv, 0),
                 .k = part(qkv, 1),
                 .v = part(qkv, 2),
                 .lse = tensor(lse),
                 .workspace = tensor(workspace),
                 .out = matrix(out, width)},
                stream.get());
  own_attention_backward({.shape = shape,
                          .d_out = matrix(d_out, width),
                          .q = part(qkv, 0),
                          .k = part(qkv, 1),
                          .v = part(qkv, 2),
                          .out = matrix(out, width),
                          .lse = tensor(lse),
                          .workspace = tensor(workspace),
                          .d_q = part(d_qkv, 0),
                          .d_k = part(d_qkv, 1),
                          .d_v = part(d_qkv, 2)},
                         stream.get());
  stream.synchronise();
  auto result = out.values();
  const auto gradient = d_qkv.values();
  result.insert(result.end(), gradient.begin(), gradient.end());
  return result;
}

/// GPUs of this compute capability come to what those of 9.0 do.
void expect_same(int major, int minor, std::int64_t head_size) {
  const auto expected = outcome(9, 0, head_size);

  const auto actual = outcome(major, minor, head_size);

  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::fmax(largest, std::fabs(static_cast<double>(float(expected[i]))));
    ASSERT_NEAR(float(actual[i]), float(expected[i]), 4e-3) << i;
  }
  EXPECT_GT(largest, 0.1);
}

TEST(OwnAttention, AGpuBefore75ComesToTheSame) { expect_same(7, 0, 40); }

// They have 64 and 99 KiB of shared memory for a block, where 9.0 has 227.
TEST(OwnAttention, AGpuWithLittleSharedMemoryComesToTheSame) {
  expect_same(7, 5, 128);
  expect_same(8, 6, 128);
  expect_same(12, 0, 128);
}

}  // namespace
}  // namespace dstune::cuda::own_test
