#include <string>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "kernels/cuda/libraries/cudnn.hpp"

namespace dstune::cuda::loaded_cudnn_test {
namespace {

TEST(LoadedCudnn, AnswersWithItsVersion) {
  ASSERT_EQ(cudnn_library().problem, "");

  EXPECT_EQ(cudnn().GetVersion() / 10000, static_cast<std::size_t>(CUDNN_MAJOR));
  EXPECT_NE(cudnn_library().handle, nullptr);
}

// As NVIDIA's frontend will open it.
TEST(LoadedCudnn, LeavesTheRunTimeOpen) {
  ASSERT_EQ(cudnn_library().problem, "");
  const std::string name = concat("libcudart.so.", CUDART_VERSION / 1000);

  EXPECT_NE(::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD), nullptr);
}

}  // namespace
}  // namespace dstune::cuda::loaded_cudnn_test
