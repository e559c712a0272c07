#include "kernels/cuda/attention/tensor_launch.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dstune::cuda::tensor_launch_test
