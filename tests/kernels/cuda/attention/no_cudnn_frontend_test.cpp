#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/attention/fused.hpp"

namespace dstune::cuda::no_cudnn_frontend_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string said_about(DType dtype, double softcap) {
  Attention op;
  op.out.dtype = dtype;
  op.shape.batch = op.shape.sequence = 2;
  op.shape.head_size = 64;
  op.shape.softcap = softcap;
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(fused_attention(op, nullptr, nullptr));
  return ::testing::internal::GetCapturedStderr();
}

TEST(NoCudnnFrontend, IsSaidOnceWhereCudnnWouldHaveComputed) {
  EXPECT_THAT(said_about(DType::fp32, 0), IsEmpty());
  EXPECT_THAT(said_about(DType::bf16, 50), IsEmpty());
  EXPECT_THAT(said_about(DType::bf16, 0), HasSubstr("nvidia-cudnn-frontend"));
  EXPECT_THAT(said_about(DType::bf16, 0), IsEmpty());
}

}  // namespace
}  // namespace dstune::cuda::no_cudnn_frontend_test
