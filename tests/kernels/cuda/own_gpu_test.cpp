#include "kernels/cuda/own_gpu.hpp"

#include <gtest/gtest.h>

namespace dstune::cuda::own_gpu_test {
namespace {

TEST(OwnGpu, IsTheOnlyOneThatIsSeen) {
  EXPECT_EQ(own_gpu(0, 1), 0);
  EXPECT_EQ(own_gpu(5, 1), 0);
}

TEST(OwnGpu, IsThatOfTheLocalRank) {
  EXPECT_EQ(own_gpu(0, 8), 0);
  EXPECT_EQ(own_gpu(7, 8), 7);
}

TEST(OwnGpu, WorkersTakeTurnsWhereThereAreTooFew) { EXPECT_EQ(own_gpu(5, 4), 1); }

TEST(OwnGpu, TheTunerOnlyLooks) { EXPECT_EQ(own_gpu(-1, 8), 0); }

TEST(HasPeers, UnlessItIsTheOnlyWorkerOfTheOnlyHost) {
  EXPECT_FALSE(has_peers({.local_size = 1, .is_one_host = true}));
  EXPECT_TRUE(has_peers({.local_size = 2, .is_one_host = true}));
  EXPECT_TRUE(has_peers({.local_size = 1, .is_one_host = false}));
}

}  // namespace
}  // namespace dstune::cuda::own_gpu_test
