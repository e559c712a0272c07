// Tests that fail where there are fewer GPUs than their names say.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace {

bool has_gpus(int count) { return cudaSetDevice(count - 1) == cudaSuccess; }

TEST(Whole, NeedsNone) {}
TEST(Whole, TrainsOnRanks1) { EXPECT_TRUE(has_gpus(1)); }
TEST(Whole, TrainsOnRanks2) { EXPECT_TRUE(has_gpus(2)); }
TEST(Parts, Ranks2Accumulation1) { EXPECT_TRUE(has_gpus(2)); }
TEST(Parts, Ranks3Accumulation1) { EXPECT_TRUE(has_gpus(3)); }
TEST(Parts, Ranks8Accumulation1) { EXPECT_TRUE(has_gpus(8)); }

}  // namespace
