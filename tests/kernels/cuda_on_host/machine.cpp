// The GPUs of tests of training on CUDA on the host.
#include <gtest/gtest.h>

#include "core/base/units.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::test {

namespace {

/// One for each rank of the largest group, with room for every test's budget.
class Gpus : public testing::Environment {
 public:
  void SetUp() override { cuda_on_host::set_up({.devices = 8, .bytes = Bytes{2} << 30U}); }
  void TearDown() override {
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}) << "the backend has lost something";
  }
};

[[maybe_unused]] const auto* const kGpus = testing::AddGlobalTestEnvironment(new Gpus);

}  // namespace

}  // namespace dstune::test
