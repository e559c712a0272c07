#include "kernels/backend.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace dstune {
namespace {

using testing::HasSubstr;

std::string refusal(const std::string& backend) {
  try {
    resolve_backend(backend);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Backend, AutoIsTheFirstAvailable) {
  EXPECT_EQ(resolve_backend("auto"), available_backends().front());
}

TEST(Backend, EveryAvailableOneMakesADeviceOfItsName) {
  for (const auto& backend : available_backends()) {
    const auto device = make_device(backend, 4096);

    EXPECT_EQ(device->name(), backend);
    EXPECT_EQ(device->memory().limit(), 4096U);
  }
}

TEST(Backend, CudaIsRefusedWithTheReason) {
  EXPECT_THAT(refusal("cuda"), HasSubstr("no CUDA training backend"));
}

TEST(Backend, UnknownNameIsRefusedWithTheAcceptedOnes) {
  EXPECT_THAT(refusal("tpu"), HasSubstr("backend tpu is unknown; accepted: auto, cpu, sim"));
}

}  // namespace
}  // namespace dstune
