#include "core/train/core_meter.hpp"

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "kernels/cpu/cpu_device.hpp"

namespace dstune::core_meter_test {
namespace {

TEST(CoreMeter, HasNeverMoreThanItWanted) {
  cpu::CpuDevice device(1);
  CoreMeter meter(device, DType::fp32);
  meter.begin_step();
  device.spend_host_time(1e-3);
  meter.end_step(3e-4, 1e-4);  // not what has passed, but then it is nobody's clock
  meter.begin_step();
  meter.end_step(1e-4, 2e-4);  // clocks that disagree

  const auto use = meter.use();

  ASSERT_EQ(use.size(), 1U);
  EXPECT_DOUBLE_EQ(use[0].wanted, 2e-4);
  EXPECT_GE(use[0].had, 0);
  EXPECT_LE(use[0].had, use[0].wanted);
  EXPECT_GT(use[0].probe_per_s, 0);
  EXPECT_GE(use[0].page_faults, 0);
}

TEST(CoreMeter, KnowsNothingWhereTimeIsVirtual) {
  DryDevice device(1);
  CoreMeter meter(device, DType::fp32);
  meter.begin_step();
  meter.end_step(1, 0);

  EXPECT_TRUE(meter.use().empty());
}

}  // namespace
}  // namespace dstune::core_meter_test
