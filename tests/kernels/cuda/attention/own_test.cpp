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

constexpr AttentionShape kShape{.batch = 1,
                                .sequence = 70,
                                .heads = 2,
                                .kv_heads = 2,
                                .head_size = 40,
                                .dropout = 0.2,
                                .seed = 3};
constexpr std::int64_t kWidth = kShape.heads * kShape.head_size;

std::vector<__half> values(std::int64_t count, double step) {
  std::vector<__half> result;
  for (std::int64_t i = 0; i < count; ++i) {
    result.emplace_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
  }
  return result;
}

Matrix matrix(DeviceArray<__half>& array, std::int64_t cols) {
  return {array.data(), kShape.sequence, cols, DType::fp16, cols};
}

Heads part(DeviceArray<__half>& qkv, std::int64_t index) {
  return heads_in(matrix(qkv, 3 * kWidth), index * kWidth, kShape.heads, kShape.head_size);
}

Tensor tensor(DeviceArray<float>& array) {
  return {array.data(), kShape.heads * kShape.sequence, DType::fp32};
}

/// out and d_qkv on a GPU of this compute capability.
std::vector<__half> outcome(int major, int minor) {
  cuda_on_host::set_up({.major = major, .minor = minor});
  const TestStream stream;
  const auto count = static_cast<std::size_t>(kShape.sequence * kWidth);
  DeviceArray<__half> qkv(values(3 * kShape.sequence * kWidth, 0.7));
  DeviceArray<__half> d_out(values(kShape.sequence * kWidth, 1.3));
  DeviceArray<__half> out(count);
  DeviceArray<__half> d_qkv(3 * count);
  DeviceArray<float> lse(static_cast<std::size_t>(kShape.heads * kShape.sequence));
  DeviceArray<float> workspace(static_cast<std::size_t>(own_attention_workspace(kShape)));
  own_attention({.shape = kShape,
                 .q = part(qkv, 0),
                 .k = part(qkv, 1),
                 .v = part(qkv, 2),
                 .lse = tensor(lse),
                 .workspace = tensor(workspace),
                 .out = matrix(out, kWidth)},
                stream.get());
  own_attention_backward({.shape = kShape,
                          .d_out = matrix(d_out, kWidth),
                          .q = part(qkv, 0),
                          .k = part(qkv, 1),
                          .v = part(qkv, 2),
                          .out = matrix(out, kWidth),
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

TEST(OwnAttention, AGpuBefore75ComesToTheSame) {
  const auto expected = outcome(9, 0);

  const auto actual = outcome(7, 0);

  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::fmax(largest, std::fabs(static_cast<double>(float(expected[i]))));
    ASSERT_NEAR(float(actual[i]), float(expected[i]), 4e-3) << i;
  }
  EXPECT_GT(largest, 0.1);
}

}  // namespace
}  // namespace dstune::cuda::own_test
