#include <gtest/gtest.h>

#include "kernels/cuda/attention/plain.hpp"
#include "kernels/cuda/attention/tensor.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::is_tiled_test {
namespace {

bool is_tiled_on(int major, std::int64_t head_size, DType dtype) {
  cuda_on_host::set_up({.major = major});
  return is_tiled({.head_size = head_size}, dtype);
}

TEST(IsTiled, HeadsOfUpTo128Columns) {
  EXPECT_TRUE(is_tiled_on(9, 128, DType::fp32));
  EXPECT_FALSE(is_tiled_on(9, 129, DType::fp32));
}

TEST(IsTiled, ScoresWithoutACap) {
  EXPECT_FALSE(is_tiled({.head_size = 64, .softcap = 30}, DType::fp32));
}

TEST(IsTiled, Bf16SinceTensorCoresKnowIt) {
  EXPECT_TRUE(is_tiled_on(8, 64, DType::bf16));
  EXPECT_FALSE(is_tiled_on(7, 64, DType::bf16));
  EXPECT_TRUE(is_tiled_on(7, 64, DType::fp16));
}

TEST(IsTensorAttention, SixteenBitTypesSinceMatricesAreLoadedAtOnce) {
  cuda_on_host::set_up({.major = 7, .minor = 5});
  EXPECT_TRUE(is_tensor_attention(DType::fp16));
  EXPECT_FALSE(is_tensor_attention(DType::fp32));
  cuda_on_host::set_up({.major = 7, .minor = 0});
  EXPECT_FALSE(is_tensor_attention(DType::fp16));
}

}  // namespace
}  // namespace dstune::cuda::is_tiled_test
