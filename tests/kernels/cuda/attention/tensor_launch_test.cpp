#include "kernels/cuda/attention/tensor_launch.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/attention/own.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::tensor_launch_test {

namespace {

std::size_t small(int warps) { return static_cast<std::size_t>(warps); }
std::size_t large(int warps) { return static_cast<std::size_t>(warps) * 100 * 1024; }

class WarpsOfBlock : public ::testing::Test {
 protected:
  void SetUp() override { cuda_on_host::set_up({.multiprocessors = 4}); }
};

TEST_F(WarpsOfBlock, MostWhereTheMultiprocessorsHaveTwoBlocksEach) {
  EXPECT_EQ(warps_of_block({.sequence = 256, .heads = 4, .rows = 32, .most = 4}, &small), 4);
  EXPECT_EQ(warps_of_block({.sequence = 256, .heads = 3, .rows = 32, .most = 4}, &small), 2);
  EXPECT_EQ(warps_of_block({.sequence = 256, .heads = 1, .rows = 32, .most = 4}, &small), 1);
}

TEST_F(WarpsOfBlock, NoMoreThanTheSequenceHasRowsFor) {
  EXPECT_EQ(warps_of_block({.sequence = 65, .heads = 99, .rows = 32, .most = 4}, &small), 4);
  EXPECT_EQ(warps_of_block({.sequence = 64, .heads = 99, .rows = 32, .most = 4}, &small), 2);
  EXPECT_EQ(warps_of_block({.sequence = 1, .heads = 99, .rows = 32, .most = 4}, &small), 1);
}

TEST_F(WarpsOfBlock, NoMoreThanSharedMemoryHasRoomFor) {
  EXPECT_EQ(warps_of_block({.sequence = 256, .heads = 99, .rows = 32, .most = 4}, &large), 2);
}

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

}  // namespace dstune::cuda::tensor_launch_test
