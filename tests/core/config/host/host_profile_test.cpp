#include "core/config/host/host_profile.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::host_profile_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

class HostProfileFile : public testing::Test {
 protected:
  /// @param hooks  the number of hooks with its key, and that of its uncertainty
  HostOverhead read(const std::string& hooks, const std::string& of_uncertainty) {
    const auto file = folder_ / "profile.json";
    testing_support::write_file(file, R"({"gradient_hook_us": 1, )" + hooks + R"(,
        "collective_us": 1, "optimizer_tensor_us": 1, "synchronization_us": 1,
        "uncertainty": {"gradient_hook_us": 1, )" +
                                          of_uncertainty + R"(, "collective_us": 1,
        "optimizer_tensor_us": 1, "synchronization_us": 1}})");
    const auto profile = read_host_profile(file, problems_);
    return profile ? profile->overhead : HostOverhead{};
  }

  testing_support::TemporaryDirectory folder_;
  Problems problems_{"profile.json"};
};

// Which were those of modules with parameters alone.
TEST_F(HostProfileFile, OfAnEarlierCalibrationHasFewerAndDearerHooks) {
  const HostOverhead earlier = read(R"("module_hook_us": 197)", R"("module_hook_us": 19.7)");

  EXPECT_EQ(faults_in(problems_), Faults{});
  EXPECT_DOUBLE_EQ(earlier.at(HostEvent::sub_module_hook), 100e-6);
  EXPECT_DOUBLE_EQ(earlier.uncertainty_of(HostEvent::sub_module_hook), 10e-6);
  EXPECT_EQ(earlier, read(R"("sub_module_hook_us": 100)", R"("sub_module_hook_us": 10)"));
}

TEST_F(HostProfileFile, WithoutHooksLacksThoseOfNow) {
  read(R"("module_call_us": 1, "operator_forward_us": 1, "operator_backward_us": 1)",
       R"("module_call_us": 1, "operator_forward_us": 1, "operator_backward_us": 1)");

  ASSERT_EQ(faults_in(problems_).size(), 2U);
  EXPECT_EQ(faults_in(problems_).front(),
            "/sub_module_hook_us  is missing; accepted: a number of microseconds >= 0");
}

}  // namespace
}  // namespace dstune::host_profile_test
