// The libraries that this was built with are here, and their functions are found without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/libraries/cublas_lt.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda::loaded_test {
namespace {

TEST(Loaded, NcclAnswersWithItsVersion) {
  ASSERT_EQ(nccl_library().problem, "");
  int version = 0;

  EXPECT_EQ(nccl().GetVersion(&version), ncclSuccess);

  EXPECT_EQ(version / 10000, NCCL_MAJOR);
  EXPECT_THAT(nccl().GetErrorString(ncclInvalidUsage), testing::StartsWith("invalid usage"));
}

TEST(Loaded, CublasLtAnswersWithItsVersion) {
  ASSERT_EQ(cublas_lt_library().problem, "");

  EXPECT_EQ(cublas_lt().GetVersion() / 10000, CUBLAS_VER_MAJOR);
  EXPECT_STREQ(cublas_lt().GetStatusName(CUBLAS_STATUS_NOT_SUPPORTED),
               "CUBLAS_STATUS_NOT_SUPPORTED");
}

}  // namespace
}  // namespace dstune::cuda::loaded_test
