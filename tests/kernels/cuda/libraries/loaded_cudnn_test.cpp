#include <gtest/gtest.h>

#include "kernels/cuda/libraries/cudnn.hpp"

namespace dstune::cuda {
namespace {

TEST(LoadedCudnn, AnswersWithItsVersion) {
  ASSERT_EQ(cudnn_library().problem, "");

  EXPECT_EQ(cudnn().GetVersion() / 10000, static_cast<std::size_t>(CUDNN_MAJOR));
  EXPECT_NE(cudnn_library().handle, nullptr);
}

}  // namespace
}  // namespace dstune::cuda
