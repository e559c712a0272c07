// On CUDA on the host, whose NCCL has a version.
#include "kernels/cuda/libraries/nccl_settings.hpp"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::nccl_settings_test {
namespace {

using testing::Contains;
using testing::ElementsAre;

class NcclSettingsTest : public testing::Test {
 protected:
  static constexpr const char* kVariables[] = {"NCCL_PROTO",      "NCCL_ALGO",   "NCCL_DEBUG",
                                               "NCCL_DEBUG_FILE", "NCCL_HOSTID", "MY_NCCL_ALGO"};

  NcclSettingsTest() {
    cuda_on_host::set_up({});
    for (const char* variable : kVariables) ::setenv(variable, "some=value", 1);
  }
  ~NcclSettingsTest() override {
    for (const char* variable : kVariables) ::unsetenv(variable);
  }
};

TEST_F(NcclSettingsTest, TheVersionMustAgreeAndVariablesOfCollectivesShould) {
  EXPECT_THAT(nccl_settings(), ElementsAre(CommonSetting{"NCCL", "2.28.9", true},
                                           CommonSetting{"NCCL_ALGO", "some=value", false},
                                           CommonSetting{"NCCL_PROTO", "some=value", false}));
}

TEST_F(NcclSettingsTest, BytesThatNoJsonHasAreShown) {
  ::setenv("NCCL_ALGO", "M\xfcller", 1);

  EXPECT_THAT(nccl_settings(), Contains(CommonSetting{"NCCL_ALGO", "M\\xFCller", false}));
}

}  // namespace
}  // namespace dstune::cuda::nccl_settings_test
